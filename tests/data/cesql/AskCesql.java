import io.cloudevents.CloudEvent;
import io.cloudevents.core.builder.CloudEventBuilder;
import io.cloudevents.sql.EvaluationException;
import io.cloudevents.sql.Expression;
import io.cloudevents.sql.ParseException;
import io.cloudevents.sql.Parser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/**
 * Answers a line of expressions and a line of events with a line of words, one for each expression:
 * a letter for each event, y or n; or "refused" if the expression is not valid.
 *
 * Words are separated by spaces. An expression is in Base64. An event is its attributes, separated
 * by commas; an attribute is name:type:value with a value in Base64 and a type s, i or b.
 */
public final class AskCesql {
    public static void main(String[] arguments) throws Exception {
        InputStreamReader input = new InputStreamReader(System.in, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(input);
        PrintStream answers = new PrintStream(System.out, true, "UTF-8");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            List<CloudEvent> events = new ArrayList<>();
            for (String event : lines.readLine().split(" ")) {
                events.add(event(event));
            }
            StringBuilder words = new StringBuilder();
            for (String expression : line.split(" ")) {
                words.append(answer(text(expression), events)).append(' ');
            }
            answers.println(words);
        }
    }

    private static String text(String encoded) {
        return new String(Base64.getDecoder().decode(encoded), StandardCharsets.UTF_8);
    }

    private static CloudEvent event(String attributes) {
        CloudEventBuilder builder = CloudEventBuilder.v1();
        for (String attribute : attributes.split(",")) {
            String[] parts = attribute.split(":", 3);
            String value = text(parts[2]);
            switch (parts[0]) {
                case "id": builder.withId(value); break;
                case "source": builder.withSource(URI.create(value)); break;
                case "type": builder.withType(value); break;
                case "subject": builder.withSubject(value); break;
                default:
                    if (parts[1].equals("i")) {
                        builder.withExtension(parts[0], Integer.valueOf(value));
                    } else if (parts[1].equals("b")) {
                        builder.withExtension(parts[0], Boolean.valueOf(value));
                    } else {
                        builder.withExtension(parts[0], value);
                    }
            }
        }
        return builder.build();
    }

    private static String answer(String text, List<CloudEvent> events) {
        StringBuilder letters = new StringBuilder();
        try {
            Expression expression = Parser.parseDefault(text);
            for (CloudEvent event : events) {
                boolean matches;
                try {
                    matches = Boolean.TRUE.equals(expression.tryEvaluate(event));
                } catch (EvaluationException error) {
                    matches = false;
                }
                letters.append(matches ? 'y' : 'n');
            }
        } catch (ParseException refusal) {
            return "refused";
        }
        return letters.toString();
    }
}
