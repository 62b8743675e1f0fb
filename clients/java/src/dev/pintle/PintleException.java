package dev.pintle;

/** What went wrong, and what to do, in one line. */
public class PintleException extends RuntimeException {
    private static final long serialVersionUID = 1;

    public PintleException(String message) {
        super(message);
    }

    PintleException(String message, Throwable cause) {
        super(message, cause);
    }
}
