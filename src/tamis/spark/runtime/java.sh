#!/bin/sh
# Calls a Java without one module that Spark asks for, and works without. A Java that has the module
# warns of it each time, and one that lacks it does not start.
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
