package dev.pintle;

import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;

/** The binary: the one of the jar of this platform, or the one that PINTLE_BINARY or the property pintle.binary names. */
final class Binary {
    private Binary() {}

    /** The version of the package, which is that of its binary; null if it runs from its sources. */
    static String version() {
        return resource("pintle-server.version");
    }

    /** The platform, as the plugins for Maven and Gradle name it that find it out. */
    static String platform() {
        String system = System.getProperty("os.name");
        String processor = System.getProperty("os.arch");
        String known = List.of("amd64", "x86_64").contains(processor) ? "x86_64" : processor.equals("aarch64") ? "aarch_64" : processor;
        return (system.startsWith("Mac") ? "osx" : system.toLowerCase().replace(' ', '-')) + "-" + known;
    }

    /** The path of the binary. */
    static Path find() {
        String property = System.getProperty("pintle.binary");
        String named = property != null ? property : System.getenv("PINTLE_BINARY");
        if (named != null && !named.isEmpty()) {
            Path program = Path.of(named).toAbsolutePath();
            if (!Files.isExecutable(program) || Files.isDirectory(program)) {
                String name = property != null ? "pintle.binary" : "PINTLE_BINARY";
                throw new PintleException(name + " names " + named + ", which is no program: correct or unset it");
            }
            return program;
        }
        return find(platform());
    }

    /** The binary of a platform, which is extracted once. */
    static Path find(String platform) {
        String digest = resource("pintle-" + platform + ".sha256");
        URL packed = Binary.class.getResource("/pintle-" + platform);
        if (digest == null || packed == null) {
            String artifact = "dev.pintle:pintle-server:" + version() + ":" + platform;
            throw new PintleException("the class path has no binary of pintle-server for " + platform + ": add " + artifact
                    + " to it, or name a binary of that version in PINTLE_BINARY");
        }
        PintleException first;
        try {
            return extracted(cache(), packed, digest);
        } catch (PintleException error) {
            first = error;
        }
        try {
            return extracted(temporary(), packed, digest);
        } catch (PintleException | IOException error) {
            first.addSuppressed(error);
            throw first;
        }
    }

    private static Path extracted(Path cache, URL packed, String digest) {
        Path program = cache.resolve(digest.substring(0, 16)).resolve("pintle");
        if (!Files.isExecutable(program)) {
            extract(packed, digest, program);
        }
        return program;
    }

    /** A directory among the temporary files, which others may have made: it is used only if nobody else can write to it. */
    private static Path temporary() throws IOException {
        Path own = Files.createTempFile("pintle-", "");
        try {
            Path directory = own.resolveSibling("pintle-cache-" + Files.getAttribute(own, "unix:uid"));
            try {
                Files.createDirectory(directory, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
            } catch (FileAlreadyExistsException exists) {
                PosixFileAttributes found = Files.readAttributes(directory, PosixFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
                Set<PosixFilePermission> others = EnumSet.of(PosixFilePermission.GROUP_WRITE, PosixFilePermission.OTHERS_WRITE);
                if (!found.isDirectory() || !found.owner().equals(Files.getOwner(own)) || !Collections.disjoint(found.permissions(), others)) {
                    throw new IOException(directory + " is not a directory of this user alone");
                }
            }
            return directory;
        } finally {
            Files.delete(own);
        }
    }

    private static Path cache() {
        String named = System.getenv("XDG_CACHE_HOME");
        Path parent = named != null && !named.isEmpty() ? Path.of(named) : Path.of(System.getProperty("user.home"), ".cache");
        return parent.resolve("pintle");
    }

    /** Writes the binary beside its place and renames it, so that other processes see all of it or nothing. */
    private static void extract(URL packed, String digest, Path program) {
        Path written = program.resolveSibling("pintle." + ProcessHandle.current().pid() + "." + System.nanoTime());
        try {
            MessageDigest hash = MessageDigest.getInstance("SHA-256");
            Files.createDirectories(program.getParent());
            try (InputStream content = new DigestInputStream(packed.openStream(), hash)) {
                Files.copy(content, written);
            }
            String found = HexFormat.of().formatHex(hash.digest());
            if (!found.equals(digest)) {
                throw new IOException("its SHA-256 is " + found + " and not " + digest);
            }
            Files.setPosixFilePermissions(written, PosixFilePermissions.fromString("rwx------"));
            Files.move(written, program, StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException | NoSuchAlgorithmException error) {
            throw new PintleException("the binary cannot be extracted to " + program + " (" + error
                    + "): name a directory that can be written to in XDG_CACHE_HOME, or a binary in PINTLE_BINARY", error);
        } finally {
            try {
                Files.deleteIfExists(written);
            } catch (IOException ignored) {
                // what could not be written is what is reported
            }
        }
    }

    private static String resource(String name) {
        try (InputStream content = Binary.class.getResourceAsStream("/" + name)) {
            return content == null ? null : new String(content.readAllBytes(), StandardCharsets.US_ASCII).strip();
        } catch (IOException error) {
            throw new PintleException("the jar of pintle-server cannot be read: " + error.getMessage(), error);
        }
    }
}
