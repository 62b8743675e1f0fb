// Command kms is a KMS v2 plugin for tests, and reads and writes values as kube-apiserver does.
//
//	kms plugin SOCKET KEYS       serves the plugin; the first line of the file KEYS is the id of the current key
//	kms seal SOCKET NAME PATH    encrypts stdin as the value of the etcd key PATH, with the provider NAME
//	kms open SOCKET NAME PATH    decrypts stdin
package main

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2"
	"k8s.io/kms/pkg/service"
)

const annotation = "origin.pintle.test"

// plugin encrypts with keys that it derives from their ids.
type plugin struct{ keys string }

func (p plugin) id() (string, error) {
	text, err := os.ReadFile(p.keys)
	id, _, _ := strings.Cut(string(text), "\n")
	return id, err
}

func aead(id string) (cipher.AEAD, error) {
	key := sha256.Sum256([]byte(id))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func (p plugin) Status(context.Context) (*service.StatusResponse, error) {
	id, err := p.id()
	if err != nil {
		return nil, err
	}
	health := "ok"
	if strings.HasPrefix(id, "sick") {
		health = "the vault is sealed"
	}
	return &service.StatusResponse{Version: "v2", Healthz: health, KeyID: id}, nil
}

func (p plugin) Encrypt(_ context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	id, err := p.id()
	if err != nil {
		return nil, err
	}
	sealer, err := aead(id)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, sealer.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	sealed := sealer.Seal(nonce, nonce, data, nil)
	return &service.EncryptResponse{Ciphertext: sealed, KeyID: id, Annotations: map[string][]byte{annotation: []byte(id)}}, nil
}

func (p plugin) Decrypt(_ context.Context, _ string, request *service.DecryptRequest) ([]byte, error) {
	if string(request.Annotations[annotation]) != request.KeyID {
		return nil, fmt.Errorf("the annotations are not those of key %q", request.KeyID)
	}
	opener, err := aead(request.KeyID)
	if err != nil {
		return nil, err
	}
	if len(request.Ciphertext) < opener.NonceSize() {
		return nil, fmt.Errorf("the ciphertext is too short")
	}
	size := opener.NonceSize()
	return opener.Open(nil, request.Ciphertext[:size], request.Ciphertext[size:], nil)
}

func serve(socket, keys string) error {
	server := service.NewGRPCService(socket, time.Minute, plugin{keys})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() { <-signals; server.Shutdown() }()
	return server.ListenAndServe()
}

// transform encrypts or decrypts stdin with the code of kube-apiserver.
func transform(mode, socket, name, path string) error {
	ctx := context.Background()
	remote, err := kmsv2.NewGRPCService(ctx, "unix://"+socket, name, 10*time.Second)
	if err != nil {
		return err
	}
	// "seal-key" encrypts in the older format, in which the source of the DEK is the encrypted key itself
	writer, object, key, err := kmsv2.GenerateTransformer(ctx, "a test", remote, mode != "seal-key")
	if err != nil {
		return err
	}
	state := kmsv2.State{
		Transformer: writer, CacheKey: key, KMSProviderName: name, ExpirationTimestamp: time.Now().Add(time.Minute),
		EncryptedObjectKeyID: object.KeyID, EncryptedObjectEncryptedDEKSource: object.EncryptedDEKSource,
		EncryptedObjectAnnotations: object.Annotations, EncryptedObjectEncryptedDEKSourceType: object.EncryptedDEKSourceType,
	}
	envelope := kmsv2.NewEnvelopeTransformer(remote, name, func() (kmsv2.State, error) { return state, nil }, "a test")
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	prefix, at := []byte("k8s:enc:kms:v2:"+name+":"), value.DefaultContext(path)
	if mode == "open" {
		rest, found := bytes.CutPrefix(input, prefix)
		if !found {
			return fmt.Errorf("no prefix %s", prefix)
		}
		plain, stale, err := envelope.TransformFromStorage(ctx, rest, at)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "stale: %t\n", stale)
		_, err = os.Stdout.Write(plain)
		return err
	}
	sealed, err := envelope.TransformToStorage(ctx, input, at)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(prefix, sealed...))
	return err
}

func run(arguments []string) error {
	switch {
	case len(arguments) == 3 && arguments[0] == "plugin":
		return serve(arguments[1], arguments[2])
	case len(arguments) == 4:
		return transform(arguments[0], arguments[1], arguments[2], arguments[3])
	}
	return fmt.Errorf("unexpected arguments %q", arguments)
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kms:", err)
		os.Exit(1)
	}
}
