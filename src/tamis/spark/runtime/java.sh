#!/bin/sh
# Starts Java without one module, which Spark requests but does not need. A Java with the module
# prints a warning at each start, and one without the module does not start.
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    if [ "$argument" = --add-modules=MODULE ]; then
        continue
    fi
    if [ "$argument" = --add-modules ] && [ "$left" -gt 0 ] && [ "$1" = MODULE ]; then
        shift
        left=$((left - 1))
        continue
    fi
    set -- "$@" "$argument"
done
exec RUNTIME "$@"
