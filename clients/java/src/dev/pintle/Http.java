package dev.pintle;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;

/**
 * HTTP/1.1 over TLS, as far as it takes for requests with short responses. Loading the classes of java.net.http takes longer than the
 * start of a server. It uses no proxy, whatever the environment and the system properties say.
 */
final class Http {
    private static final int TIME_MILLISECONDS = 60_000;
    // less than the server keeps a connection that is idle, so that no request meets one that is being closed
    private static final long IDLE_SECONDS = 20;
    private static final int NO_CONTENT = 204;

    private final String host;
    private final int port;
    private final SSLSocketFactory sockets;
    private final ConcurrentLinkedDeque<Line> idle = new ConcurrentLinkedDeque<>();

    /** A response. */
    record Response(int code, String body) {}

    /** A connection. */
    private record Line(SSLSocket socket, InputStream in, OutputStream out, long idleSince) {
        Line idleNow() {
            return new Line(socket, in, out, System.nanoTime());
        }

        void close() {
            try {
                socket.close();
            } catch (IOException ignored) {
                // it has no other use
            }
        }
    }

    Http(URI server, SSLSocketFactory sockets) {
        host = server.getHost();
        port = server.getPort();
        this.sockets = sockets;
    }

    /** Sends a request on an idle connection or a new one. */
    Response send(String method, String path, String headers, byte[] body) throws IOException {
        Line line = line();
        boolean isComplete = false;
        try {
            line.out().write(message(method, path, headers, body));
            line.out().flush();
            int code = Integer.parseInt(line(line.in()).split(" ", 3)[1]);
            Response response = response(line, code);
            isComplete = true;
            return response;
        } finally {
            if (!isComplete) {
                line.close();
            }
        }
    }

    private Line line() throws IOException {
        for (Line found = idle.pollFirst(); found != null; found = idle.pollFirst()) {
            if (System.nanoTime() - found.idleSince() < TimeUnit.SECONDS.toNanos(IDLE_SECONDS)) {
                return found;
            }
            found.close();
        }
        Socket plain = new Socket(Proxy.NO_PROXY);
        try {
            plain.connect(new InetSocketAddress(host, port), TIME_MILLISECONDS);
            plain.setTcpNoDelay(true);
            plain.setSoTimeout(TIME_MILLISECONDS);
            SSLSocket socket = (SSLSocket) sockets.createSocket(plain, host, port, true);
            SSLParameters parameters = socket.getSSLParameters();
            parameters.setEndpointIdentificationAlgorithm("HTTPS");
            socket.setSSLParameters(parameters);
            return new Line(socket, new BufferedInputStream(socket.getInputStream()), socket.getOutputStream(), 0);
        } catch (IOException error) {
            plain.close();
            throw error;
        }
    }

    /** The bytes of a request, which are one record of TLS if they are few. */
    private byte[] message(String method, String path, String headers, byte[] body) {
        String length = body == null ? "" : "Content-Length: " + body.length + "\r\n";
        String head = method + " " + path + " HTTP/1.1\r\nHost: " + host + ":" + port + "\r\n" + headers + length + "\r\n";
        ByteArrayOutputStream message = new ByteArrayOutputStream();
        message.writeBytes(head.getBytes(StandardCharsets.ISO_8859_1));
        if (body != null) {
            message.writeBytes(body);
        }
        return message.toByteArray();
    }

    /** Reads the headers and the body of a response. The connection is idle again unless the server closes it. */
    private Response response(Line line, int code) throws IOException {
        long length = -1;
        boolean isChunked = false;
        boolean ends = false;
        for (String header = line(line.in()); !header.isEmpty(); header = line(line.in())) {
            int colon = header.indexOf(':');
            String value = header.substring(colon + 1).strip();
            switch (header.substring(0, Math.max(colon, 0)).toLowerCase(Locale.ROOT)) {
                case "content-length" -> length = Long.parseLong(value);
                case "transfer-encoding" -> isChunked = value.equalsIgnoreCase("chunked");
                case "connection" -> ends = value.equalsIgnoreCase("close");
                default -> { }
            }
        }
        byte[] body;
        if (isChunked) {
            body = chunks(line.in());
        } else if (length >= 0) {
            body = exactly(line.in(), length);
        } else if (code == NO_CONTENT) {
            body = new byte[0];
        } else {
            ends = true;
            body = line.in().readAllBytes();
        }
        if (ends) {
            line.close();
        } else {
            idle.addFirst(line.idleNow());
        }
        return new Response(code, new String(body, StandardCharsets.UTF_8));
    }

    private static byte[] chunks(InputStream in) throws IOException {
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        while (true) {
            long length = Long.parseLong(line(in).split(";", 2)[0].strip(), 16);
            if (length == 0) {
                break;
            }
            body.writeBytes(exactly(in, length));
            line(in);
        }
        // trailers, and the empty line after them
        String trailer;
        do {
            trailer = line(in);
        } while (!trailer.isEmpty());
        return body.toByteArray();
    }

    private static byte[] exactly(InputStream in, long length) throws IOException {
        byte[] bytes = in.readNBytes(Math.toIntExact(length));
        if (bytes.length < length) {
            throw new EOFException("the connection has ended within a response");
        }
        return bytes;
    }

    /** A line without its end. */
    private static String line(InputStream in) throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int read = in.read(); read != '\n'; read = in.read()) {
            if (read < 0) {
                throw new EOFException("the connection has ended without a response");
            }
            line.write(read);
        }
        return line.toString(StandardCharsets.ISO_8859_1).stripTrailing();
    }

    /** Closes the connections that are idle. */
    void close() {
        for (Line found = idle.pollFirst(); found != null; found = idle.pollFirst()) {
            found.close();
        }
    }
}
