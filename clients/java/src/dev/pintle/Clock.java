package dev.pintle;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The clock of a workspace, which tests stop and advance: the time of its objects, events, tokens and certificates. What becomes due by
 * an advance is done when {@link Workspace#settle()} returns. A clock never goes back.
 */
public final class Clock {
    private static final String CLOCK = Workspace.TESTING + "/clocks/clock";
    private static final Pattern PART = Pattern.compile("([\\d.]+)(ms|s|m|h)");
    private static final Map<String, Double> MILLISECONDS = Map.of("ms", 1.0, "s", 1e3, "m", 60e3, "h", 3600e3);

    private final Workspace workspace;

    Clock(Workspace workspace) {
        this.workspace = workspace;
    }

    /** Stops it at what it shows. */
    public void stop() {
        change(Map.of("stopped", true));
    }

    /** Stops it at a time. The seed makes uids and generated names repeatable; the clock must not have been changed before. */
    public void stopAt(Instant time, long seed) {
        change(Map.of("stopped", true, "time", time.toString(), "seed", seed));
    }

    /** Advances it. */
    public void advance(Duration by) {
        change(Map.of("advance", advanced().plus(by).toMillis() + "ms"));
    }

    /** Sets it to a time. */
    public void set(Instant time) {
        change(Map.of("time", time.toString()));
    }

    /** Lets it go on from what it shows. */
    public void resume() {
        change(Map.of("stopped", false));
    }

    /** The time is that of the machine again. */
    public void delete() {
        workspace.request("DELETE", CLOCK);
    }

    /** By how much it has been advanced in all. */
    private Duration advanced() {
        try {
            Object text = ((Map<?, ?>) workspace.request("GET", CLOCK).get("spec")).get("advance");
            double milliseconds = 0;
            for (Matcher part = PART.matcher(text == null ? "" : text.toString()); part.find(); ) {
                milliseconds += Double.parseDouble(part.group(1)) * MILLISECONDS.get(part.group(2));
            }
            return Duration.ofMillis(Math.round(milliseconds));
        } catch (ResponseException error) {
            if (error.code() != Server.NOT_FOUND) {
                throw error;
            }
            return Duration.ZERO;
        }
    }

    private void change(Map<String, ?> spec) {
        try {
            workspace.request("PATCH", CLOCK, Map.of("spec", spec), Api.MERGE_PATCH);
        } catch (ResponseException error) {
            if (error.code() != Server.NOT_FOUND) {
                throw error;
            }
            workspace.testing("Clock", "clocks", "clock", spec);
        }
    }
}
