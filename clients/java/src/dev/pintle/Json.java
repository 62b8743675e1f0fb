package dev.pintle;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON as maps, lists, strings, numbers and booleans: the JDK has no parser, and the package has no dependencies. */
final class Json {
    private static final int DEPTH = 500;

    private final String text;
    private int at;
    private int depth;

    private Json(String text) {
        this.text = text;
    }

    /** The value of a text. */
    static Object parse(String text) {
        Json json = new Json(text);
        Object value = json.value();
        if (json.peek() != 0) {
            throw json.wrong();
        }
        return value;
    }

    /** A text whose value is an object. */
    @SuppressWarnings("unchecked")
    static Map<String, Object> parseObject(String text) {
        Object value = parse(text);
        if (value instanceof Map) {
            return (Map<String, Object>) value;
        }
        throw new IllegalArgumentException("the JSON is not an object");
    }

    private IllegalArgumentException wrong() {
        return new IllegalArgumentException("the JSON is invalid at offset " + at);
    }

    /** The next character that is not white space, or 0 at the end. */
    private char peek() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        return at < text.length() ? text.charAt(at) : 0;
    }

    private void expect(char wanted) {
        if (peek() != wanted) {
            throw wrong();
        }
        at++;
    }

    private boolean takes(char wanted) {
        boolean is = peek() == wanted;
        at += is ? 1 : 0;
        return is;
    }

    private Object value() {
        switch (peek()) {
            case '{':
                return object();
            case '[':
                return array();
            case '"':
                return string();
            case 't':
                return word("true", true);
            case 'f':
                return word("false", false);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw wrong();
        }
        at += word.length();
        return value;
    }

    private void enter() {
        at++;
        if (++depth > DEPTH) {
            throw wrong();
        }
    }

    private Map<String, Object> object() {
        enter();
        Map<String, Object> fields = new LinkedHashMap<>();
        if (!takes('}')) {
            do {
                if (peek() != '"') {
                    throw wrong();
                }
                String name = string();
                expect(':');
                fields.put(name, value());
            } while (takes(','));
            expect('}');
        }
        depth--;
        return fields;
    }

    private List<Object> array() {
        enter();
        List<Object> items = new ArrayList<>();
        if (!takes(']')) {
            do {
                items.add(value());
            } while (takes(','));
            expect(']');
        }
        depth--;
        return items;
    }

    private String string() {
        at++;
        StringBuilder decoded = new StringBuilder();
        while (at < text.length()) {
            char next = text.charAt(at++);
            if (next == '"') {
                return decoded.toString();
            }
            decoded.append(next == '\\' ? escape() : next);
        }
        throw wrong();
    }

    private char escape() {
        char next = at < text.length() ? text.charAt(at++) : 0;
        int plain = "\"\\/bfnrt".indexOf(next);
        if (next != 0 && plain >= 0) {
            return "\"\\/\b\f\n\r\t".charAt(plain);
        }
        if (next != 'u' || at + 4 > text.length()) {
            throw wrong();
        }
        at += 4;
        try {
            return (char) Integer.parseInt(text.substring(at - 4, at), 16);
        } catch (NumberFormatException error) {
            throw wrong();
        }
    }

    private Object number() {
        int start = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String digits = text.substring(start, at);
        try {
            return Long.valueOf(digits);
        } catch (NumberFormatException noInteger) {
            try {
                return Double.valueOf(digits);
            } catch (NumberFormatException noNumber) {
                throw wrong();
            }
        }
    }

    /** The text of a value. */
    static String write(Object value) {
        StringBuilder written = new StringBuilder();
        write(value, written);
        return written.toString();
    }

    private static void write(Object value, StringBuilder written) {
        if (value instanceof Map) {
            char before = '{';
            for (Map.Entry<?, ?> field : ((Map<?, ?>) value).entrySet()) {
                quote(String.valueOf(field.getKey()), written.append(before));
                write(field.getValue(), written.append(':'));
                before = ',';
            }
            written.append(before == '{' ? "{}" : "}");
        } else if (value instanceof Iterable) {
            char before = '[';
            for (Object item : (Iterable<?>) value) {
                write(item, written.append(before));
                before = ',';
            }
            written.append(before == '[' ? "[]" : "]");
        } else if (value == null || value instanceof Number || value instanceof Boolean) {
            written.append(value);
        } else {
            quote(value.toString(), written);
        }
    }

    private static void quote(String text, StringBuilder written) {
        written.append('"');
        for (int i = 0; i < text.length(); i++) {
            char next = text.charAt(i);
            if (next == '"' || next == '\\') {
                written.append('\\').append(next);
            } else if (next < ' ') {
                written.append(String.format("\\u%04x", (int) next));
            } else {
                written.append(next);
            }
        }
        written.append('"');
    }
}
