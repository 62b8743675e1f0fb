// Command backups has the counterparts of the tests of backups. `s3` serves an S3-compatible object store in memory and prints its
// address; it verifies signatures with the keys "access" and "secret" and has the bucket "backups". `encrypt PASSPHRASE` and
// `decrypt PASSPHRASE` run age from stdin to stdout.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"filippo.io/age"
	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

func main() {
	var err error
	switch os.Args[1] {
	case "s3":
		err = serve()
	case "encrypt":
		err = encrypt(os.Args[2])
	case "decrypt":
		err = decrypt(os.Args[2])
	}
	if err != nil {
		log.Fatal(err)
	}
}

func serve() error {
	backend := s3mem.New()
	if err := backend.CreateBucket(nil, "backups"); err != nil {
		return err
	}
	store := gofakes3.New(backend, gofakes3.WithV4Auth(map[string]string{"access": "secret"}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return http.Serve(listener, store.Server())
}

func encrypt(passphrase string) error {
	recipient, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return err
	}
	out, err := age.Encrypt(os.Stdout, recipient)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, os.Stdin); err != nil {
		return err
	}
	return out.Close()
}

func decrypt(passphrase string) error {
	identity, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return err
	}
	in, err := age.Decrypt(os.Stdin, identity)
	if err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, in)
	return err
}
