package envtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// how long the certificates of webhooks are valid, both ways: clocks differ
const validity = 24 * time.Hour

// WebhookInstallOptions says which webhooks are installed, and after Start where the test has to serve them.
type WebhookInstallOptions struct {
	// Paths are files and directories of configurations. Directories below them are not read.
	Paths              []string
	MutatingWebhooks   []*admissionv1.MutatingWebhookConfiguration
	ValidatingWebhooks []*admissionv1.ValidatingWebhookConfiguration
	// IgnoreSchemeConvertible sends the conversions of all definitions to the test.
	IgnoreSchemeConvertible  bool
	IgnoreErrorIfPathMissing bool

	// The address to serve at, a free port unless one is named, and the directory of tls.crt and tls.key.
	LocalServingHost    string
	LocalServingPort    int
	LocalServingCertDir string
	LocalServingCAData  []byte
	// LocalServingHostExternalName is the host that the server calls, if it is another one.
	LocalServingHostExternalName string

	// These are there so that tests compile: a configuration holds as soon as it has been created.
	MaxTime      time.Duration
	PollInterval time.Duration
}

// PrepWithoutInstalling chooses the port, makes the certificates, and reads the configurations.
func (o *WebhookInstallOptions) PrepWithoutInstalling() error {
	if o.LocalServingHost == "" {
		o.LocalServingHost = "127.0.0.1"
	}
	if o.LocalServingPort == 0 {
		listener, err := net.Listen("tcp", net.JoinHostPort(o.LocalServingHost, "0"))
		if err != nil {
			return fmt.Errorf("there is no port for webhooks: %w", err)
		}
		o.LocalServingPort = listener.Addr().(*net.TCPAddr).Port
		listener.Close()
	}
	if err := o.certify(); err != nil {
		return fmt.Errorf("there is no certificate for webhooks: %w", err)
	}
	if err := o.read(); err != nil {
		return err
	}
	return o.ModifyWebhookDefinitions()
}

// read adds the configurations in the paths.
func (o *WebhookInstallOptions) read() error {
	objects, err := read(o.Paths, !o.IgnoreErrorIfPathMissing)
	if err != nil {
		return err
	}
	for _, object := range objects {
		switch object.GetKind() {
		case "MutatingWebhookConfiguration":
			o.MutatingWebhooks = append(o.MutatingWebhooks, &admissionv1.MutatingWebhookConfiguration{})
			err = convert(object, o.MutatingWebhooks[len(o.MutatingWebhooks)-1])
		case "ValidatingWebhookConfiguration":
			o.ValidatingWebhooks = append(o.ValidatingWebhooks, &admissionv1.ValidatingWebhookConfiguration{})
			err = convert(object, o.ValidatingWebhooks[len(o.ValidatingWebhooks)-1])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", object.GetName(), err)
		}
	}
	return nil
}

// ModifyWebhookDefinitions sends the calls of Services to the address of the test.
func (o *WebhookInstallOptions) ModifyWebhookDefinitions() error {
	for _, configuration := range o.MutatingWebhooks {
		for i := range configuration.Webhooks {
			o.modify(&configuration.Webhooks[i].ClientConfig)
		}
	}
	for _, configuration := range o.ValidatingWebhooks {
		for i := range configuration.Webhooks {
			o.modify(&configuration.Webhooks[i].ClientConfig)
		}
	}
	return nil
}

func (o *WebhookInstallOptions) modify(config *admissionv1.WebhookClientConfig) {
	config.CABundle = o.LocalServingCAData
	if config.Service == nil {
		return
	}
	path := ""
	if config.Service.Path != nil {
		path = *config.Service.Path
	}
	url := o.url(path)
	config.URL, config.Service = &url, nil
}

func (o *WebhookInstallOptions) url(path string) string {
	host := o.LocalServingHostExternalName
	if host == "" {
		host = o.LocalServingHost
	}
	return fmt.Sprintf("https://%s/%s", net.JoinHostPort(host, strconv.Itoa(o.LocalServingPort)), strings.TrimPrefix(path, "/"))
}

// Install creates or updates the configurations.
func (o *WebhookInstallOptions) Install(config *rest.Config) error {
	if len(o.LocalServingCAData) == 0 {
		if err := o.PrepWithoutInstalling(); err != nil {
			return err
		}
	}
	version := admissionv1.SchemeGroupVersion
	for _, found := range o.MutatingWebhooks {
		found.TypeMeta = metav1.TypeMeta{APIVersion: version.String(), Kind: "MutatingWebhookConfiguration"}
		if err := store(config, version.WithResource("mutatingwebhookconfigurations"), found); err != nil {
			return fmt.Errorf("%s %s: %w", found.Kind, found.Name, err)
		}
	}
	for _, found := range o.ValidatingWebhooks {
		found.TypeMeta = metav1.TypeMeta{APIVersion: version.String(), Kind: "ValidatingWebhookConfiguration"}
		if err := store(config, version.WithResource("validatingwebhookconfigurations"), found); err != nil {
			return fmt.Errorf("%s %s: %w", found.Kind, found.Name, err)
		}
	}
	return nil
}

// Cleanup removes the certificates.
func (o *WebhookInstallOptions) Cleanup() error {
	if o.LocalServingCertDir == "" {
		return nil
	}
	return os.RemoveAll(o.LocalServingCertDir)
}

// certify makes an authority, and a certificate for the address.
func (o *WebhookInstallOptions) certify() error {
	authority := certificate("webhooks of tests")
	authority.IsCA, authority.KeyUsage = true, x509.KeyUsageCertSign
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	own := certificate("localhost")
	own.KeyUsage, own.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range []string{"localhost", o.LocalServingHost, o.LocalServingHostExternalName} {
		if address := net.ParseIP(name); address != nil {
			own.IPAddresses = append(own.IPAddresses, address)
		} else if name != "" {
			own.DNSNames = append(own.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, own, authority, key.Public(), authorityKey)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if o.LocalServingCertDir, err = os.MkdirTemp("", "envtest-webhooks-"); err != nil {
		return err
	}
	o.LocalServingCAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authorityDER})
	return errors.Join(
		os.WriteFile(filepath.Join(o.LocalServingCertDir, "tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(filepath.Join(o.LocalServingCertDir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600),
	)
}

// certificate is what all certificates have.
func certificate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-validity), NotAfter: now.Add(validity), BasicConstraintsValid: true,
	}
}
