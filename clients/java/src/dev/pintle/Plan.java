package dev.pintle;

import java.util.List;
import java.util.Map;

/**
 * What a change would do. {@code varying} has differences between two runs of the change, with {@code --details}, and {@code hosts} those
 * that the command has asked its proxy for.
 */
public record Plan(
        List<Change> changes,
        Map<String, Long> summary,
        List<Refusal> refused,
        List<String> varying,
        List<String> webhooks,
        List<String> hosts) {
    /**
     * What happens to one object: create, change, recreate or delete. The resource has its group, as in {@code deployments.apps}; the
     * namespace, the name and the reason are null if there is none.
     */
    public record Change(
            String action, String resource, String namespace, String name, List<String> by, String reason, List<Field> fields) {}

    /** A field that changes. A value that is missing is null. */
    public record Field(String path, Object old, Object changed) {}

    /** A write that the server refused. */
    public record Refusal(
            String by, String verb, String resource, String namespace, String name, String message, long count) {}

    static Plan of(Result plan) {
        return new Plan(
                plan.each("changes", one -> new Change(one.text("action"), one.text("resource"), one.text("namespace"),
                        one.text("name"), one.list("by"), one.text("reason"), one.each("fields", Plan::field))),
                plan.get("summary"),
                plan.each("refused", one -> new Refusal(one.text("by"), one.text("verb"), one.text("resource"),
                        one.text("namespace"), one.text("name"), one.text("message"), one.<Long>get("count"))),
                plan.list("varying"),
                plan.list("webhooks"),
                plan.list("hosts"));
    }

    private static Field field(Result field) {
        return new Field(field.text("path"), field.get("old"), field.get("new"));
    }
}
