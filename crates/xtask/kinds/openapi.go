package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
)

// A schema of a published OpenAPI document, without what its Go type says as well.
type schema struct {
	Required   []string
	Properties map[string]*schema
	AllOf      []*schema
	Ref        string `json:"$ref"`
	Type       string
	Format     string
	Default    json.RawMessage
	Enum       []any
	ListType   string   `json:"x-kubernetes-list-type"`
	MapKeys    []string `json:"x-kubernetes-list-map-keys"`
	MapType    string   `json:"x-kubernetes-map-type"`
	Strategy   string   `json:"x-kubernetes-patch-strategy"`
	MergeKey   string   `json:"x-kubernetes-patch-merge-key"`
	OneOf      json.RawMessage
	Unions     []union            `json:"x-kubernetes-unions"`
	Kinds      []groupVersionKind `json:"x-kubernetes-group-version-kind"`
}

// A union says which of its fields the value of a discriminator, if there is one, stands for.
type union struct {
	Discriminator string
	Fields        map[string]string `json:"fields-to-discriminateBy"`
}

// readSchemas returns the schemas of all documents in a directory by name, such as io.k8s.api.core.v1.Pod.
func readSchemas(directory string) (map[string]*schema, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.json"))
	if err != nil {
		return nil, err
	}
	all := map[string]*schema{}
	for _, file := range files {
		var document struct {
			Components struct{ Schemas map[string]*schema }
		}
		if err := readJSON(file, &document); err != nil {
			return nil, err
		}
		for name, one := range document.Components.Schemas {
			all[name] = one
		}
	}
	return all, nil
}

// optionPaths are the paths whose query is an object, by the type of the object.
var optionPaths = map[string]string{
	"core.v1.NodeProxyOptions":      "/api/v1/nodes/{name}/proxy",
	"core.v1.PodAttachOptions":      "/api/v1/namespaces/{namespace}/pods/{name}/attach",
	"core.v1.PodExecOptions":        "/api/v1/namespaces/{namespace}/pods/{name}/exec",
	"core.v1.PodLogOptions":         "/api/v1/namespaces/{namespace}/pods/{name}/log",
	"core.v1.PodPortForwardOptions": "/api/v1/namespaces/{namespace}/pods/{name}/portforward",
	"core.v1.PodProxyOptions":       "/api/v1/namespaces/{namespace}/pods/{name}/proxy",
	"core.v1.ServiceProxyOptions":   "/api/v1/namespaces/{namespace}/services/{name}/proxy",
}

// readParameters returns the names that the v2 document gives to the parameters of those paths, by type and field.
func readParameters(path string) (map[string]map[string]string, error) {
	var document struct {
		Paths map[string]struct {
			Parameters []struct {
				Ref string `json:"$ref"`
			}
		}
		Parameters map[string]struct{ Name, In string }
	}
	if err := readJSON(path, &document); err != nil {
		return nil, err
	}
	all := map[string]map[string]string{}
	for of, path := range optionPaths {
		all[of] = map[string]string{}
		for _, parameter := range document.Paths[path].Parameters {
			name := strings.TrimPrefix(parameter.Ref, "#/parameters/")
			if shared := document.Parameters[name]; shared.In == "query" {
				all[of][shared.Name] = name
			}
		}
	}
	return all, nil
}
