package dev.pintle;

/** An error of the API. */
public final class ResponseException extends PintleException {
    private static final long serialVersionUID = 1;

    private final int code;

    ResponseException(int code, String message) {
        super(message);
        this.code = code;
    }

    /** The status code of HTTP. */
    public int code() {
        return code;
    }
}
