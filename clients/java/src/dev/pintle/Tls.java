package dev.pintle;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.Collection;
import java.util.Map;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;

/** The TLS context of credentials in PEM. The stores that the system properties of the JVM name have no part in it. */
final class Tls {
    // SEQUENCE { INTEGER 0, SEQUENCE { ecPublicKey, prime256v1 } }: what PKCS #8 has before the key of SEC 1
    private static final byte[] EC_PREFIX = Base64.getDecoder().decode("AgEAMBMGByqGSM49AgEGCCqGSM49AwEH");
    private static final int SEQUENCE = 0x30;
    private static final int OCTET_STRING = 0x04;

    private Tls() {}

    /** Loads the classes of TLS in another thread, while the caller waits for the start of the server. */
    static void load() {
        Thread thread = new Thread(() -> {
            try {
                SSLContext context = SSLContext.getInstance("TLS");
                context.init(null, new TrustManager[0], null);
                SSLEngine engine = context.createSSLEngine();
                engine.setUseClientMode(true);
                // a first message, which is sent to no server
                engine.wrap(ByteBuffer.allocate(0), ByteBuffer.allocate(engine.getSession().getPacketBufferSize()));
                CertificateFactory.getInstance("X.509");
                KeyFactory.getInstance("EC");
            } catch (GeneralSecurityException | IOException error) {
                // the first request has the same error
            }
        }, "pintle-tls");
        thread.setDaemon(true);
        thread.start();
    }

    static SSLContext context(Map<?, ?> credentials) {
        try {
            // this format encrypts a key in no time; the one of PKCS #12 takes tens of milliseconds
            KeyStore keys = KeyStore.getInstance("JKS");
            keys.load(null, null);
            char[] password = {};
            Certificate[] chain = certificates(credentials.get("certificate")).toArray(new Certificate[0]);
            keys.setKeyEntry("client", key(credentials.get("key").toString()), password, chain);
            KeyManagerFactory keyManagers = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            keyManagers.init(keys, password);
            KeyStore authorities = KeyStore.getInstance("JKS");
            authorities.load(null, null);
            for (Certificate authority : certificates(credentials.get("certificateAuthority"))) {
                authorities.setCertificateEntry("authority-" + authorities.size(), authority);
            }
            TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(authorities);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(keyManagers.getKeyManagers(), trust.getTrustManagers(), null);
            return context;
        } catch (GeneralSecurityException | IOException error) {
            throw new PintleException("the credentials of the server cannot be used: " + error.getMessage(), error);
        }
    }

    private static Collection<? extends Certificate> certificates(Object pem) throws GeneralSecurityException {
        byte[] bytes = pem.toString().getBytes(StandardCharsets.US_ASCII);
        return CertificateFactory.getInstance("X.509").generateCertificates(new ByteArrayInputStream(bytes));
    }

    private static PrivateKey key(String pem) throws GeneralSecurityException {
        byte[] der = Base64.getMimeDecoder().decode(pem.replaceAll("-----[A-Z0-9 ]+-----", ""));
        byte[] encoded = pem.contains("BEGIN EC PRIVATE KEY") ? element(SEQUENCE, EC_PREFIX, element(OCTET_STRING, der)) : der;
        return KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(encoded));
    }

    /** An element of DER. */
    private static byte[] element(int tag, byte[]... parts) {
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            content.writeBytes(part);
        }
        ByteArrayOutputStream whole = new ByteArrayOutputStream();
        whole.write(tag);
        if (content.size() > 0x7f) {
            // a key has fewer than 256 bytes
            whole.write(0x81);
        }
        whole.write(content.size());
        whole.writeBytes(content.toByteArray());
        return whole.toByteArray();
    }
}
