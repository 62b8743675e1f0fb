package dev.pintle;

/** The tests that share a workspace. */
public enum Scope {
    /** None: each test has its own. */
    TEST,
    /** Those of a class, with those of the classes in it. */
    CLASS
}
