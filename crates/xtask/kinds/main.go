// Command kinds writes the facts of Kubernetes' built-in kinds as four tables.
//
// types.txt has the Go types of all kinds: fields in the order of their struct, with protobuf number, JSON name, type, and
// how they are printed and merged, and what OpenAPI says of them. discovery.txt has the resources of discovery. The facts are read from the modules that
// go.mod names: Go types by reflection, list types, keys and defaults from the published OpenAPI documents, resources from
// the published discovery document. internal.txt has the internal types that messages print, from their declarations.
// declared.txt has the rules that tags of the Go types declare, from the same; GROUPS_DIRECTORY says of which kinds.
// Descriptions are not read.
//
// Usage: go run . OUT_DIRECTORY GROUPS_DIRECTORY, or `cargo xtask kinds`.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// release is that of the published documents; go.mod has the same one's Go types.
const release = "v1.37.2"

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: kinds OUT_DIRECTORY GROUPS_DIRECTORY"))
	}
	directory := os.Args[1]
	api, err := moduleDirectory("k8s.io/kubernetes@" + release)
	fail(err)
	resources, err := readDiscovery(filepath.Join(api, "api", "discovery", "aggregated_v2.json"))
	fail(err)
	schemas, err := readSchemas(filepath.Join(api, "api", "openapi-spec", "v3"))
	fail(err)
	parameters, err := readParameters(filepath.Join(api, "api", "openapi-spec", "swagger.json"))
	fail(err)
	enums, err := readEnums(api)
	fail(err)
	types := newTypes(schemas, parameters, enums)
	for _, resource := range resources {
		fail(types.addKind(resource))
	}
	for _, further := range furtherTypes {
		_, err := types.add(further)
		fail(err)
	}
	fail(write(filepath.Join(directory, "types.txt"), types.table()))
	fail(write(filepath.Join(directory, "discovery.txt"), discoveryTable(resources)))
	internal, err := readInternal(api)
	fail(err)
	fail(write(filepath.Join(directory, "internal.txt"), internal.table()))
	published, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	fail(err)
	declared, err := readDeclarations(strings.TrimSpace(string(published)), os.Args[2])
	fail(err)
	fail(write(filepath.Join(directory, "declared.txt"), declared.table()))
}

// moduleDirectory fetches a module of which no package is imported.
func moduleDirectory(module string) (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", module).Output()
	if err != nil {
		return "", err
	}
	var fetched struct{ Dir string }
	return fetched.Dir, json.Unmarshal(out, &fetched)
}

func write(path, text string) error {
	return os.WriteFile(path, []byte(text), 0o644)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "kinds:", err)
		os.Exit(1)
	}
}
