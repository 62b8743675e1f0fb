// Package tests tests the module as users have it: from outside, with the program in the module embedded.
package tests

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pintle/pintle/clients/go/clientgo"
	"github.com/pintle/pintle/clients/go/pintle"
	"github.com/pintle/pintle/clients/go/pintletest"

	"pintle.test/go/internal/suite"
)

var ctx = context.Background()

var options = pintletest.Options{CRDPaths: []string{"testdata/boats"}}

// names returns the boats in a workspace.
func names(t *testing.T, workspace *pintletest.Workspace) (names []string) {
	t.Helper()
	found, err := dynamic.NewForConfigOrDie(clientgo.Config(workspace)).Resource(suite.Boats).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, boat := range found.Items {
		names = append(names, boat.GetName())
	}
	return names
}

func expect(t *testing.T, workspace *pintletest.Workspace, wanted ...string) {
	t.Helper()
	if found := names(t, workspace); !slices.Equal(found, wanted) {
		t.Fatalf("boats %v, not %v", found, wanted)
	}
}

func TestWorkspacesAreApart(t *testing.T) {
	one, two := pintletest.New(t, options), pintletest.New(t, options)
	if err := one.ApplyObjects(ctx, suite.Boat("mary")); err != nil {
		t.Fatal(err)
	}
	expect(t, one, "argo", "mary", "vasa")
	expect(t, two, "argo", "vasa")
	fork := one.Fork(t)
	if err := fork.ApplyObjects(ctx, suite.Boat("rose")); err != nil {
		t.Fatal(err)
	}
	expect(t, fork, "argo", "mary", "rose", "vasa")
	if err := fork.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	expect(t, fork, "argo", "mary", "vasa")
	if err := one.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	expect(t, one, "argo", "vasa")
	err := pintletest.New(t).ApplyObjects(ctx, suite.Boat("mary"))
	if wanted := `no matches for kind "Boat" in version "example.com/v1": apply its CustomResourceDefinition first`; err == nil || !strings.HasSuffix(err.Error(), wanted) {
		t.Fatal(err)
	}
}

// TestTwoFilesMayNameTheirTemplatesAlike: the file of suite.Fleet has a template of the same key.
func TestTwoFilesMayNameTheirTemplatesAlike(t *testing.T) {
	own := pintletest.NewTemplate(t, "fleet", func(workspace *pintle.Workspace) error {
		return workspace.ApplyObjects(ctx, suite.Boat("mary"))
	}, options)
	expect(t, own.Fork(t), "argo", "mary", "vasa")
	expect(t, suite.Fleet(t, options).Fork(t), "argo", "rose", "vasa")
	if err := pintletest.New(t).Apply(ctx, t.TempDir()); err == nil || !strings.Contains(err.Error(), "has no file that ends with .yaml, .yml or .json") {
		t.Fatal(err)
	}
}

func TestTemplatesAreBuiltOnce(t *testing.T) {
	built := 0
	build := func(workspace *pintle.Workspace) error {
		built++
		return workspace.Apply(ctx, "testdata/boats/z-crd.yaml", "testdata/boats/a-boats.yaml")
	}
	for range 3 {
		expect(t, pintletest.NewTemplate(t, "boats", build).Fork(t), "argo", "vasa")
	}
	if built != 1 {
		t.Fatal(built)
	}
}

func TestKubeconfig(t *testing.T) {
	path, err := pintletest.New(t, options).Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerResourcesForGroupVersion("example.com/v1"); err != nil {
		t.Fatal(err)
	}
}

// place is a directory for the sockets of one test. Its path is short, since those of sockets are.
func place(t *testing.T) string {
	directory, err := os.MkdirTemp("/tmp", "pin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	return directory
}

// gone waits until a server has ended, and all of its files are gone.
func gone(t *testing.T, place string, pids ...int) {
	t.Helper()
	var left []string
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		left = nil
		filepath.WalkDir(place, func(path string, _ fs.DirEntry, err error) error {
			if path != place && !errors.Is(err, fs.ErrNotExist) {
				left = append(left, path)
			}
			return nil
		})
		for _, pid := range pids {
			if syscall.Kill(pid, 0) == nil {
				left = append(left, strconv.Itoa(pid))
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Fatalf("%v are left", left)
}

// command is one whose tests have a server of their own in a place.
func command(place string, environment []string, name string, arguments ...string) *exec.Cmd {
	command := exec.Command(name, arguments...)
	command.Env = append(append(os.Environ(), "XDG_RUNTIME_DIR="+place), environment...)
	return command
}

// TestSuitesLeaveNothing runs two hundred tests in four processes beside each other.
func TestSuitesLeaveNothing(t *testing.T) {
	place := place(t)
	output, err := command(place, []string{"SUITES=1"}, "go", "test", "-count=1", "-v", "./suites/...").CombinedOutput()
	if passed := strings.Count(string(output), "    --- PASS: "); err != nil || passed != 200 {
		t.Fatalf("%d passed, %v: %s", passed, err, output)
	}
	gone(t, place)
}

func TestTypedObjectsAreApplied(t *testing.T) {
	workspace := pintletest.New(t, options)
	typed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "typed", Namespace: "default"}, Data: map[string]string{"a": "b"}}
	if err := clientgo.Apply(ctx, workspace, typed, suite.Boat("mary")); err != nil {
		t.Fatal(err)
	}
	maps := dynamic.NewForConfigOrDie(clientgo.Config(workspace)).Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("default")
	if found, err := maps.Get(ctx, "typed", metav1.GetOptions{}); err != nil || found.Object["data"].(map[string]any)["a"] != "b" {
		t.Fatal(found, err)
	}
	expect(t, workspace, "argo", "mary", "vasa")
}

func TestFailuresShowTheWorkspace(t *testing.T) {
	place := place(t)
	arguments := []string{"test", "-count=1", "-run", "Fails", "./failing"}
	output, err := command(place, []string{"FAILING=1"}, "go", arguments...).CombinedOutput()
	if !regexp.MustCompile(`log of the Pintle server:\n.*failed calling webhook, failing open`).Match(output) {
		t.Fatalf("%s", output)
	}
	if err == nil || !regexp.MustCompile(`workspace of this test, until the end of the run; PINTLE_KEEP=10m keeps it for that time:\n +KUBECONFIG=/\S+\.kubeconfig kubectl api-resources`).Match(output) {
		t.Fatalf("%s", output)
	}
	if !regexp.MustCompile(`what differs from the beginning of the workspace:\n +.*ConfigMap default/a\n +.*ValidatingWebhookConfiguration`).Match(output) {
		t.Fatalf("%s", output)
	}
	gone(t, place)
	output, _ = command(place, []string{"FAILING=1", "PINTLE_KEEP=5s"}, "go", arguments...).CombinedOutput()
	kubeconfig := regexp.MustCompile(`KUBECONFIG=(\S+)`).FindSubmatch(output)
	if kubeconfig == nil {
		t.Fatalf("%s", output)
	}
	config, err := clientcmd.BuildConfigFromFlags("", string(kubeconfig[1]))
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if _, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerVersion(); err != nil {
		t.Fatal(err)
	}
	gone(t, place)
}

func TestWhatIsWrongIsOneLine(t *testing.T) {
	older := filepath.Join(t.TempDir(), "pintle")
	// says that it has another version, as a server does
	script := "#!/usr/bin/env python3\n" + `
import json, os, socket, sys
flag = "--exit-with-users="
path = [word[len(flag):] for word in sys.argv if word.startswith(flag)][0]
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
print("ready", flush=True)
user, _ = listener.accept()
user.sendall(b'{"version": "0.0.1", "url": "https://127.0.0.1:1"}\n')
user.recv(1)
os.unlink(path)
os.unlink(path[:-4] + "log")
`
	if err := os.WriteFile(older, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ run, binary, wanted string }{
		{"WrongFlags", "", `the server does not start: unexpected argument '--no-such-flag' found \(exit status 2\)`},
		{"Fails", "/no/such/pintle", `PINTLE_BINARY names /no/such/pintle, which is no program: correct or unset it`},
		{"Fails", "/bin/true", `/bin/true ends without starting a server: run /bin/true serve to see why, and correct PINTLE_BINARY if it is set`},
		{"Fails", older, regexp.QuoteMeta(older) + ` has version 0\.0\.1, and \S+ has 0\.1\.0: go get \S+@v0\.0\.1, or use another program`},
	} {
		place := place(t)
		environment := []string{"FAILING=1"}
		if test.binary != "" {
			environment = append(environment, "PINTLE_BINARY="+test.binary)
		}
		output, _ := command(place, environment, "go", "test", "-count=1", "-run", test.run, "./failing").CombinedOutput()
		if !regexp.MustCompile(`(?m)^ +failing_test.go:\d+: pintletest: ` + test.wanted + `\n--- FAIL|: pintletest: ` + test.wanted + `\n`).Match(output) {
			t.Errorf("%s, not %s", output, test.wanted)
		}
		gone(t, filepath.Join(place, fmt.Sprintf("pintle-%d", os.Getuid())))
	}
}

// TestProcess is a process of a test run: it says which server it has, and runs until it is ended.
func TestProcess(t *testing.T) {
	if os.Getenv("PROCESS") == "" {
		t.Skip("TestProcessesShareAServer runs it")
	}
	config := clientgo.Start(t)
	fmt.Printf("server %s\n", strings.Split(config.Host, "/clusters/")[0])
	select {}
}

func TestProcessesShareAServer(t *testing.T) {
	place := place(t)
	servers := map[string]bool{}
	var processes []*exec.Cmd
	for range 4 {
		process := command(place, []string{"PROCESS=1"}, os.Args[0], "-test.run=^TestProcess$")
		stdout, err := process.StdoutPipe()
		if err == nil {
			err = process.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(stdout).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "server ") {
			t.Fatal(line, err)
		}
		servers[line] = true
		processes = append(processes, process)
	}
	if len(servers) != 1 {
		t.Fatal(servers)
	}
	for i, process := range processes {
		if files, err := os.ReadDir(place); err != nil || len(files) == 0 {
			t.Fatalf("the server has ended after %d of its users: %v", i, err)
		}
		process.Process.Kill()
		process.Wait()
	}
	gone(t, place)
}

// TestBuilder is a process that never ends to build a template.
func TestBuilder(t *testing.T) {
	if os.Getenv("BUILDER") == "" {
		t.Skip("TestDeadBuildersFreeTheirTemplate runs it")
	}
	pintletest.NewTemplate(t, "dead", func(*pintle.Workspace) error {
		fmt.Println("building")
		select {}
	})
}

// TestDeadBuildersFreeTheirTemplate: the lifetime of what the builder has begun ends, since nobody extends it.
func TestDeadBuildersFreeTheirTemplate(t *testing.T) {
	t.Setenv("PINTLE_RUN", fmt.Sprintf("dead builder of %d", os.Getpid()))
	// keeps the server
	pintletest.New(t)
	builder := exec.Command(os.Args[0], "-test.run=^TestBuilder$")
	builder.Env = append(os.Environ(), "BUILDER=1")
	stdout, err := builder.StdoutPipe()
	if err == nil {
		err = builder.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "building\n" {
		t.Fatal(line, err)
	}
	builder.Process.Kill()
	builder.Wait()
	built := 0
	template := pintletest.NewTemplate(t, "dead", func(workspace *pintle.Workspace) error {
		built++
		return workspace.Apply(ctx, "testdata/boats")
	})
	expect(t, template.Fork(t), "argo", "vasa")
	if built != 1 {
		t.Fatal(built)
	}
}

// TestStop ends the use of the server in the middle of a process, which has a place of its own.
func TestStop(t *testing.T) {
	if os.Getenv("STOPPING") == "" {
		place := place(t)
		if output, err := command(place, []string{"STOPPING=1"}, os.Args[0], "-test.run=^TestStop$").CombinedOutput(); err != nil {
			t.Fatalf("%s", output)
		}
		return
	}
	t.Run("uses it", func(t *testing.T) { pintletest.New(t) })
	place := os.Getenv("XDG_RUNTIME_DIR")
	if files, err := os.ReadDir(place); err != nil || len(files) == 0 {
		t.Fatalf("there is no server: %v", err)
	}
	pintletest.Stop()
	gone(t, place)
	t.Run("uses another one", func(t *testing.T) { pintletest.New(t) })
}

// TestProxiesAndOtherAuthoritiesAreNotUsed is that of another process, since Go reads the environment once.
func TestProxiesAndOtherAuthoritiesAreNotUsed(t *testing.T) {
	place := place(t)
	environment := []string{
		"HTTPS_PROXY=http://192.0.2.1:9", "https_proxy=http://192.0.2.1:9", "NO_PROXY=", "no_proxy=", "SSL_CERT_FILE=/no/such/file", "SSL_CERT_DIR=/no/such/directory",
	}
	output, err := command(place, environment, os.Args[0], "-test.run=^TestWorkspacesAreApart$").CombinedOutput()
	if err != nil {
		t.Fatalf("%s", output)
	}
	gone(t, place)
}

// BenchmarkWorkspace is what each test pays: a fork, its first response, and its end.
func BenchmarkWorkspace(b *testing.B) {
	template := pintletest.NewTemplate(b, "benchmark", func(workspace *pintle.Workspace) error { return workspace.Apply(ctx, "testdata/boats") })
	b.Run("fork", func(b *testing.B) {
		for range b.N {
			template.Fork(b)
		}
	})
	b.Run("fork and list", func(b *testing.B) {
		for range b.N {
			boats := dynamic.NewForConfigOrDie(clientgo.Config(template.Fork(b))).Resource(suite.Boats)
			if _, err := boats.List(ctx, metav1.ListOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkStart is what the first test of a run pays: a server, a workspace, and a response. It is that of other processes.
func BenchmarkStart(b *testing.B) {
	for range b.N {
		if output, err := exec.Command(os.Args[0], "-test.run=^TestKubeconfig$").CombinedOutput(); err != nil {
			b.Fatalf("%s", output)
		}
	}
}

func TestPlansAndTrials(t *testing.T) {
	one := filepath.Join(t.TempDir(), "map.yaml")
	if err := os.WriteFile(one, []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	plan, err := pintle.MakePlan(ctx, "--from", one, "--delete", "configmap/a")
	if err != nil || plan.Summary["delete"] != 1 || plan.Changes[0].Name != "a" {
		t.Fatal(plan, err)
	}
	trial, err := pintle.RunTrial(ctx, "--start", "kubectl get configmaps -w", "--steps", one, "--quiet", "1s", "--cell", "1:down")
	if err != nil || len(trial.Cells) != 1 || trial.Cells[0].Verdict != "same" {
		t.Fatal(trial, err)
	}
	if _, err := pintle.MakePlan(ctx, "--from", one, "--delete", "configmap/b"); err == nil || !strings.Contains(err.Error(), "there is no object") {
		t.Fatal(err)
	}
}
