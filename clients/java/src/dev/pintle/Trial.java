package dev.pintle;

import java.util.List;

/** What faults break. */
public record Trial(String summary, List<Finding> findings, List<Cell> cells) {
    /** Cells that show the same, with the smallest of them and the command that repeats it. */
    public record Finding(
            String cell, String disturbance, List<String> symptoms, long shown, long repeated, List<String> cells, String command) {}

    /** A run: {@code same}, {@code differs} with symptoms, or {@code not-tried} with a reason, which is null otherwise. */
    public record Cell(String cell, String verdict, List<String> symptoms, String reason) {}

    static Trial of(Result trial) {
        return new Trial(
                trial.text("summary"),
                trial.each("findings", one -> new Finding(one.text("cell"), one.text("disturbance"), one.list("symptoms"),
                        one.<Long>get("shown"), one.<Long>get("repeated"), one.list("cells"), one.text("command"))),
                trial.each("cells", one -> new Cell(one.text("cell"), one.text("verdict"), one.list("symptoms"), one.text("reason"))));
    }
}
