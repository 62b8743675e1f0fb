// Package testing takes the place of k8s.io/apiextensions-apiserver/pkg/cmd/server/testing while its integration tests run
// against another server: it starts the program of the environment variable PINTLE as a process, on the etcd that the tests use.
package testing

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	extensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
)

// startTime bounds the time until the server is ready.
const startTime = time.Minute

// extensionServerFlags are flags of an extension API server, which delegates authentication and authorization. Pintle does not.
var extensionServerFlags = []string{"--authentication-skip-lookup", "--authentication-kubeconfig", "--authorization-kubeconfig", "--kubeconfig"}

// TearDownFunc stops the server and removes its files.
type TearDownFunc func()

// TestServerInstanceOptions has no options.
type TestServerInstanceOptions struct{}

// TestServer is a running server. ServerOpts and CompletedConfig are made from the flags of the test; tests take from them where
// the server keeps its objects in etcd.
type TestServer struct {
	ClientConfig    *restclient.Config
	ServerOpts      *options.CustomResourceDefinitionsServerOptions
	TearDownFn      TearDownFunc
	TmpDir          string
	CompletedConfig extensionsapiserver.CompletedConfig
}

// Logger is the part of testing.TB that upstream's tests use.
type Logger interface {
	Errorf(format string, args ...interface{})
	Fatalf(format string, args ...interface{})
	Logf(format string, args ...interface{})
}

// StartTestServer starts the server with the flags of the test, and with the feature gates and the emulated release that the test
// has set in this process.
func StartTestServer(t Logger, _ *TestServerInstanceOptions, flags []string, _ *storagebackend.Config) (TestServer, error) {
	directory, err := os.MkdirTemp("", "pintle-integration")
	if err != nil {
		return TestServer{}, err
	}
	parsed, config, err := parse(flags, directory)
	if err != nil {
		os.RemoveAll(directory)
		return TestServer{}, err
	}
	stop, err := run(t, directory, append(withoutExtensionFlags(flags), featureFlags()...))
	if err != nil {
		os.RemoveAll(directory)
		return TestServer{}, err
	}
	client, err := clientcmd.BuildConfigFromFlags("", filepath.Join(directory, "admin.kubeconfig"))
	if err != nil {
		stop()
		return TestServer{}, err
	}
	// no limit of requests per second
	client.QPS = -1
	return TestServer{ClientConfig: client, ServerOpts: parsed, TearDownFn: stop, TmpDir: directory, CompletedConfig: config}, nil
}

// StartTestServerOrDie ends the test if the server does not start.
func StartTestServerOrDie(t Logger, instance *TestServerInstanceOptions, flags []string, storage *storagebackend.Config) *TestServer {
	server, err := StartTestServer(t, instance, flags, storage)
	if err != nil {
		t.Fatalf("start the server: %v", err)
	}
	return &server
}

// parse returns the options and the configuration that upstream's server would have. No request is served with them; the
// configuration needs an address, and certificates that it writes to `directory`.
func parse(flags []string, directory string) (*options.CustomResourceDefinitionsServerOptions, extensionsapiserver.CompletedConfig, error) {
	var none extensionsapiserver.CompletedConfig
	parsed := options.NewCustomResourceDefinitionsServerOptions(os.Stdout, os.Stderr)
	registry := basecompatibility.NewComponentGlobalsRegistry()
	features := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	version := compatibility.DefaultKubeEffectiveVersionForTest()
	version.SetEmulationVersion(features.EmulationVersion())
	if err := registry.Register(basecompatibility.DefaultKubeComponent, version, features); err != nil {
		return nil, none, err
	}
	parsed.ServerRunOptions.ComponentGlobalsRegistry = registry
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	parsed.AddFlags(set)
	if err := set.Parse(flags); err != nil {
		return nil, none, err
	}
	if err := registry.Set(); err != nil {
		return nil, none, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, none, err
	}
	defer listener.Close()
	serving := parsed.RecommendedOptions.SecureServing
	serving.Listener, serving.BindPort = listener, listener.Addr().(*net.TCPAddr).Port
	serving.ServerCert.CertDirectory = filepath.Join(directory, "upstream")
	if err := parsed.Complete(); err != nil {
		return nil, none, err
	}
	config, err := parsed.Config()
	if err != nil {
		return nil, none, err
	}
	return parsed, config.Complete(), nil
}

// withoutExtensionFlags returns the flags without extensionServerFlags and their values.
func withoutExtensionFlags(flags []string) []string {
	var kept []string
	for index := 0; index < len(flags); index++ {
		name, _, hasValue := strings.Cut(flags[index], "=")
		if !contains(extensionServerFlags, name) {
			kept = append(kept, flags[index])
		} else if !hasValue && index+1 < len(flags) && !strings.HasPrefix(flags[index+1], "--") {
			index++
		}
	}
	return kept
}

func contains(names []string, name string) bool {
	for _, other := range names {
		if other == name {
			return true
		}
	}
	return false
}

// featureFlags returns flags for the emulated release and the feature gates that differ from their defaults in this process.
func featureFlags() []string {
	features := utilfeature.DefaultMutableFeatureGate
	release := features.EmulationVersion()
	current := compatibility.DefaultKubeEffectiveVersionForTest().BinaryVersion()
	var flags []string
	if release.Minor() != current.Minor() {
		flags = append(flags, fmt.Sprintf("--emulated-version=%d.%d", release.Major(), release.Minor()))
	}
	for name, specs := range features.GetAllVersioned() {
		enabled := features.Enabled(name)
		if enabled != defaultOf(specs, release.Minor()) {
			flags = append(flags, fmt.Sprintf("--feature-gates=%s=%v", name, enabled))
		}
	}
	return flags
}

// defaultOf returns the default of a feature gate in the release 1.`minor`.
func defaultOf(specs featuregate.VersionedSpecs, minor uint) bool {
	enabled := false
	for _, spec := range specs {
		if spec.Version.Minor() <= minor {
			enabled = spec.Default
		}
	}
	return enabled
}

// run starts the server and waits for the line that it prints when it is ready. It returns the function that stops the server.
func run(t Logger, directory string, flags []string) (TearDownFunc, error) {
	arguments := append([]string{"serve", "--data-dir", directory, "--secure-port", "0", "--runtime-config", "api/all=true"}, flags...)
	command := exec.Command(os.Getenv("PINTLE"), arguments...)
	var messages bytes.Buffer
	command.Stderr = &messages
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	stop := func() {
		command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil {
			t.Logf("the server: %v", err)
		}
		t.Logf("%s", messages.String())
		os.RemoveAll(directory)
	}
	ready := make(chan bool, 1)
	go func() {
		line, _ := bufio.NewReader(output).ReadString('\n')
		ready <- strings.Contains(line, "is ready")
	}()
	select {
	case isReady := <-ready:
		if isReady {
			return stop, nil
		}
	case <-time.After(startTime):
	}
	stop()
	return nil, fmt.Errorf("%s did not start: %s", command, messages.String())
}
