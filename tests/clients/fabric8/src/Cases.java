import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Objects;
import java.util.concurrent.Callable;

/** Runs cases and exchanges lines with tests/blackbox/test_clients.py, which started the program. */
final class Cases {
  interface Body {
    void run() throws Exception;
  }

  private static final BufferedReader ANSWERS = new BufferedReader(new InputStreamReader(System.in));
  private static boolean failed;

  private Cases() {}

  static void run(String name, Body body) {
    try {
      body.run();
      System.out.println("ok " + name);
    } catch (Throwable error) { // every failure is told, whatever it is
      failed = true;
      System.out.println("FAIL " + name + ": " + error.toString().replace('\n', ' '));
      error.printStackTrace();
    }
  }

  static int status() {
    return failed ? 1 : 0;
  }

  /** Has the server end, by "restart" or by "kill", and start again with its data and its port. */
  static void end(String how) throws Exception {
    System.out.println(how);
    equal("answer", ANSWERS.readLine(), "started");
  }

  static void equal(String what, Object got, Object want) {
    that(Objects.equals(got, want), what + ": got " + got + ", want " + want);
  }

  static void that(boolean so, String what) {
    if (!so) {
      throw new AssertionError(what);
    }
  }

  static void eventually(String what, Callable<Boolean> check) throws Exception {
    long over = System.nanoTime() + 30_000_000_000L;
    while (!check.call()) {
      that(System.nanoTime() < over, what + " did not come about");
      Thread.sleep(20);
    }
  }

  /** Answers the error of this kind that the body must throw. */
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
