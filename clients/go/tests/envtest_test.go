package tests

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pintle/pintle/clients/go/clientgo/envtest"

	"pintle.test/go/internal/suite"
)

func boats(config *rest.Config) dynamic.ResourceInterface {
	return dynamic.NewForConfigOrDie(config).Resource(suite.Boats).Namespace("default")
}

func create(config *rest.Config, name string) (*unstructured.Unstructured, error) {
	return boats(config).Create(context.Background(), suite.Boat(name), metav1.CreateOptions{})
}

func start(t *testing.T, environment *envtest.Environment) *rest.Config {
	t.Helper()
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	return config
}

// TestEnvironment is what the suite of an operator does, with the import of controller-runtime changed.
func TestEnvironment(t *testing.T) {
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("testdata", "boats")},
		ErrorIfCRDPathMissing: true,
		BinaryAssetsDirectory: filepath.Join("bin", "k8s"),
	}
	config := start(t, environment)
	if len(environment.CRDs) != 1 || environment.CRDs[0].Status.StoredVersions[0] != "v1" {
		t.Fatal(environment.CRDs)
	}
	created, err := create(config, "argo")
	if crew, _, _ := unstructured.NestedInt64(created.Object, "spec", "crew"); err != nil || crew != 3 {
		t.Fatal(created, err)
	}
	other := start(t, &envtest.Environment{CRDInstallOptions: envtest.CRDInstallOptions{Paths: []string{"testdata/boats/z-crd.yaml"}}})
	if found, err := boats(other).List(context.Background(), metav1.ListOptions{}); err != nil || len(found.Items) != 0 {
		t.Fatal(found, err)
	}
	// again, as suites with several entry points do
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: environment.CRDs}); err != nil {
		t.Fatal(err)
	}
	existing := true
	again := start(t, &envtest.Environment{UseExistingCluster: &existing, Config: config, CRDInstallOptions: envtest.CRDInstallOptions{
		Paths: []string{"testdata/boats"}, CleanUpAfterUse: true,
	}})
	if _, err := boats(again).Get(context.Background(), "argo", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestKubeConfigOfEnvironment(t *testing.T) {
	environment := &envtest.Environment{CRDDirectoryPaths: []string{"testdata/boats"}}
	start(t, environment)
	config, err := clientcmd.RESTConfigFromKubeConfig(environment.KubeConfig)
	if err == nil {
		_, err = create(config, "argo")
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestMissingPaths(t *testing.T) {
	if _, err := (&envtest.Environment{CRDDirectoryPaths: []string{"no/such"}, ErrorIfCRDPathMissing: true}).Start(); !os.IsNotExist(errorOf(err)) {
		t.Fatal(err)
	}
	start(t, &envtest.Environment{CRDDirectoryPaths: []string{"no/such"}})
}

// errorOf is the innermost first error.
func errorOf(err error) error {
	for {
		switch wrapping := err.(type) {
		case interface{ Unwrap() error }:
			err = wrapping.Unwrap()
		case interface{ Unwrap() []error }:
			err = wrapping.Unwrap()[0]
		default:
			return err
		}
		if os.IsNotExist(err) {
			return err
		}
	}
}

func TestUsersHaveThePermissionsOfTheirGroups(t *testing.T) {
	environment := &envtest.Environment{CRDDirectoryPaths: []string{"testdata/boats"}}
	start(t, environment)
	for _, test := range []struct {
		group       string
		isForbidden bool
	}{{"sailors", true}, {"system:masters", false}} {
		user, err := environment.AddUser(envtest.User{Name: "jane", Groups: []string{test.group}}, &rest.Config{QPS: 50})
		if err != nil || user.Config().QPS != 50 {
			t.Fatal(err)
		}
		if _, err := create(user.Config(), "argo"); apierrors.IsForbidden(err) != test.isForbidden {
			t.Errorf("%s: %v", test.group, err)
		}
		content, err := user.KubeConfig()
		if err != nil || !strings.Contains(string(content), test.group) {
			t.Error(string(content), err)
		}
	}
}

// TestWebhooks serves one as the manager of an operator does: at the address and with the certificate of the environment.
func TestWebhooks(t *testing.T) {
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{"testdata/boats"},
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{"testdata/hooks"}},
	}
	config := start(t, environment)
	options := environment.WebhookInstallOptions
	listener, err := net.Listen("tcp", net.JoinHostPort(options.LocalServingHost, strconv.Itoa(options.LocalServingPort)))
	if err != nil {
		t.Fatal(err)
	}
	handler := http.NewServeMux()
	handler.HandleFunc("/validate-boats", func(response http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		var review map[string]any
		json.Unmarshal(body, &review)
		uid, _, _ := unstructured.NestedString(review, "request", "uid")
		name, _, _ := unstructured.NestedString(review, "request", "name")
		review["response"] = map[string]any{"uid": uid, "allowed": name != "titanic", "status": map[string]any{"message": "it sinks"}}
		json.NewEncoder(response).Encode(review)
	})
	server := &http.Server{Handler: handler}
	go server.ServeTLS(listener, filepath.Join(options.LocalServingCertDir, "tls.crt"), filepath.Join(options.LocalServingCertDir, "tls.key"))
	defer server.Close()
	if _, err := create(config, "argo"); err != nil {
		t.Fatal(err)
	}
	if _, err := create(config, "titanic"); err == nil || !strings.Contains(err.Error(), "it sinks") {
		t.Fatal(err)
	}
}
