package dev.pintle;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.SocketException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * A use of a server that the processes of a test run share, and that ends with the last of them.
 *
 * <p>A Unix socket stands for the server. A connection to it makes this process a user; the kernel closes it however the process ends.
 * The server sends a line of JSON when it is ready. Without a server there, this process starts one, which ends at once if another
 * process was faster; see {@code pintle serve --help}.
 */
final class Connection {
    private static final List<String> FLAGS =
            List.of("--storage=memory", "--workspaces", "--testing", "--secure-port=0", "--bind-address=127.0.0.1", "-o=json");
    private static final long START_SECONDS = 60;
    // addresses of Unix sockets have 104 bytes on macOS, and what follows the parent takes up to 40 of them
    private static final int PARENT_BYTES = 60;
    private static final Path SETSID = Path.of("/usr/bin/setsid");

    // A program that ends without a word this often, for this long, is no server; another process that starts one ends ours once or twice.
    private static final int SILENT_ENDS = 20;
    private static final int SILENT_SECONDS = 3;

    final Path program;
    final Path data;
    private final Path directory;
    private final Path socket;
    private final Path log;
    private final List<String> command;
    private SocketChannel channel;
    private Map<String, Object> ready;

    private Connection(String run, List<String> flags) throws IOException {
        program = Binary.find();
        directory = directory();
        List<String> parts = new ArrayList<>(List.of(run, program.toString(), "java"));
        parts.addAll(List.of(Files.getLastModifiedTime(program).toString(), Long.toString(Files.size(program))));
        parts.addAll(flags);
        String name = hash(String.join("\0", parts));
        socket = directory.resolve(name + ".sock");
        log = directory.resolve(name + ".log");
        data = directory.resolve(name + ".data");
        command = new ArrayList<>();
        if (Files.isExecutable(SETSID)) {
            // a session of its own: Ctrl-C is for the tests
            command.add(SETSID.toString());
        }
        command.addAll(List.of(program.toString(), "serve"));
        command.addAll(FLAGS);
        command.addAll(List.of("--exit-with-users=" + socket, "--data-dir=" + data));
        command.addAll(flags);
    }

    /** Becomes a user of the server, and starts one if there is none. */
    static Connection open(String run, List<String> flags) {
        Tls.load();
        try {
            Connection connection = new Connection(run, flags);
            long began = System.nanoTime();
            long until = began + TimeUnit.SECONDS.toNanos(START_SECONDS);
            for (int ends = 0; System.nanoTime() < until; ends++) {
                if (connection.connect(until)) {
                    return connection;
                }
                if (ends > SILENT_ENDS && System.nanoTime() - began > TimeUnit.SECONDS.toNanos(SILENT_SECONDS)) {
                    // the directory only if no other server is in it
                    if (connection.log.toFile().delete()) {
                        connection.directory.toFile().delete();
                    }
                    throw new PintleException(connection.program + " ends without starting a server: run " + connection.program
                            + " serve to see why, and correct PINTLE_BINARY if it is set");
                }
                connection.spawn();
            }
            throw new PintleException(
                    "no server has started within " + START_SECONDS + " s: run " + connection.program + " serve to see why");
        } catch (IOException error) {
            throw new PintleException("no server can be reached: " + error, error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new PintleException("the start of the server has been interrupted", error);
        }
    }

    /** The first half of a SHA-256 in hexadecimal digits. */
    static String hash(String text) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(digest).substring(0, 16);
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }

    /** What the server has said when it was ready. */
    Map<String, Object> ready() {
        return ready;
    }

    void close() {
        try {
            channel.close();
        } catch (IOException ignored) {
            // the server sees the end of the process instead
        }
    }

    /** The directory of the sockets, which only this user can read. */
    private static Path directory() {
        String name = "pintle-" + new com.sun.security.auth.module.UnixSystem().getUid();
        String runtime = System.getenv("XDG_RUNTIME_DIR");
        List<String> parents = new ArrayList<>(List.of(System.getProperty("java.io.tmpdir")));
        if (runtime != null && !runtime.isEmpty()) {
            parents.add(0, runtime);
        }
        for (String parent : parents) {
            if (parent.length() <= PARENT_BYTES && Files.isWritable(Path.of(parent))) {
                return Path.of(parent).toAbsolutePath().resolve(name);
            }
        }
        return Path.of("/tmp", name);
    }

    /** Connects, and reads the first line. False if there is no server, or if it is about to end. */
    private boolean connect(long until) throws IOException {
        SocketChannel opened = SocketChannel.open(StandardProtocolFamily.UNIX);
        try {
            opened.connect(UnixDomainSocketAddress.of(socket));
            String line = line(opened, until);
            if (!line.isEmpty()) {
                ready = Json.parseObject(line);
                channel = opened;
                return true;
            }
        } catch (SocketException notThere) {
            // as if it had ended
        }
        opened.close();
        return false;
    }

    private static String line(SocketChannel opened, long until) throws IOException {
        StringBuilder line = new StringBuilder();
        ByteBuffer buffer = ByteBuffer.allocate(1 << 14);
        opened.configureBlocking(false);
        try (Selector selector = Selector.open()) {
            opened.register(selector, SelectionKey.OP_READ);
            while (line.indexOf("\n") < 0) {
                selector.select(Math.max(1, TimeUnit.NANOSECONDS.toMillis(until - System.nanoTime())));
                int count = opened.read(buffer.clear());
                if (count < 0 || (count == 0 && System.nanoTime() > until)) {
                    return "";
                }
                // the line has no characters beyond ASCII that a piece could cut: paths are those of this class
                line.append(StandardCharsets.UTF_8.decode(buffer.flip()));
            }
        }
        return line.toString();
    }

    /** Starts a server, and returns when it accepts connections, or another one does. */
    private void spawn() throws IOException, InterruptedException {
        Process process;
        long size;
        try {
            Files.createDirectory(directory, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        } catch (FileAlreadyExistsException alreadyThere) {
            // the server checks whose it is
        }
        try {
            size = Files.exists(log) ? Files.size(log) : 0;
            // the server removes the log
            process = new ProcessBuilder(command)
                    .redirectInput(Path.of("/dev/null").toFile())
                    .redirectError(ProcessBuilder.Redirect.appendTo(log.toFile()))
                    .start();
        } catch (NoSuchFileException endedWithItsLog) {
            return;
        } catch (IOException error) {
            if (!Files.exists(directory)) {
                // that of a server that has just ended
                return;
            }
            throw new PintleException("cannot run " + program + ": " + error.getMessage(), error);
        }
        boolean isReady;
        try (BufferedReader stdout = process.inputReader()) {
            isReady = stdout.readLine() != null;
        }
        if (!isReady && process.waitFor() != 0) {
            throw new PintleException("the server does not start: " + reason(size, process.exitValue()));
        }
    }

    /** The last line that a server has logged which does not start; its log and the directory are removed. */
    private String reason(long size, int status) throws IOException {
        String[] lines = since(log, size).strip().split("\n");
        Files.deleteIfExists(log);
        try {
            Files.delete(directory);
        } catch (IOException notEmpty) {
            // other servers have it
        }
        String last = lines[lines.length - 1];
        return last.isEmpty() ? "status " + status : last;
    }

    /** What a file has after an offset; nothing if there is no file. */
    static String since(Path file, long size) throws IOException {
        try (var content = Files.newInputStream(file)) {
            content.skip(size);
            return new String(content.readAllBytes(), StandardCharsets.UTF_8);
        } catch (NoSuchFileException gone) {
            return "";
        }
    }
}
