import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import software.amazon.event.ruler.Machine;

/**
 * Answers a line {"patterns": [text, ...], "events": [text, ...]} with a line of words, one for each
 * pattern: a letter for each event, y or n; or "refused" if the pattern is not valid.
 */
public final class AskRuler {
    public static void main(String[] arguments) throws Exception {
        InputStreamReader input = new InputStreamReader(System.in, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(input);
        PrintStream answers = new PrintStream(System.out, true, "UTF-8");
        ObjectMapper json = new ObjectMapper();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode asked = json.readTree(line);
            StringBuilder words = new StringBuilder();
            for (JsonNode pattern : asked.get("patterns")) {
                words.append(answer(pattern.asText(), asked.get("events"))).append(' ');
            }
            answers.println(words);
        }
    }

    private static String answer(String pattern, JsonNode events) throws Exception {
        Machine machine = new Machine();
        try {
            machine.addRule("rule", pattern);
        } catch (Exception refusal) {
            return "refused";
        }
        StringBuilder letters = new StringBuilder();
        for (JsonNode event : events) {
            letters.append(machine.rulesForJSONEvent(event.asText()).isEmpty() ? 'n' : 'y');
        }
        return letters.toString();
    }
}
