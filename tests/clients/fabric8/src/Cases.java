import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Objects;
import java.util.concurrent.Callable;

/** Runs the test cases. Exchanges lines with tests/blackbox/test_clients.py, which starts the program. */
final class Cases {
  interface Body {
    void run() throws Exception;
  }

  private static final BufferedReader STDIN = new BufferedReader(new InputStreamReader(System.in));
  private static boolean failed;

  private Cases() {}

  static void run(String name, Body body) {
    try {
      body.run();
      System.out.println("ok " + name);
    } catch (Throwable error) { // any failure is reported
      failed = true;
      System.out.println("FAIL " + name + ": " + error.toString().replace('\n', ' '));
      error.printStackTrace();
    }
  }

  static int exitStatus() {
    return failed ? 1 : 0;
  }

  /** Restarts the server with the same data and port: the command is "restart" (SIGTERM) or "kill" (SIGKILL). */
  static void restartServer(String command) throws Exception {
    System.out.println(command);
    equal("line from the harness", STDIN.readLine(), "started");
  }

  static void equal(String what, Object got, Object want) {
    check(Objects.equals(got, want), what + ": got " + got + ", want " + want);
  }

  static void check(boolean condition, String message) {
    if (!condition) {
      throw new AssertionError(message);
    }
  }

  static void eventually(String what, Callable<Boolean> condition) throws Exception {
    long deadline = System.nanoTime() + 30_000_000_000L;
    while (!condition.call()) {
      check(System.nanoTime() < deadline, "timeout: " + what);
      Thread.sleep(20);
    }
  }

  /** Returns the exception of this class that the body must throw. */
  static <E extends Throwable> E thrown(Class<E> kind, Body body) throws Exception {
    try {
      body.run();
    } catch (Throwable error) {
      if (kind.isInstance(error)) {
        return kind.cast(error);
      }
      throw error;
    }
    throw new AssertionError("no " + kind.getSimpleName() + " was thrown");
  }
}
