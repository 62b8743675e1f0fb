package main

import (
	"encoding/json"
	"path/filepath"
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
	ListType   string          `json:"x-kubernetes-list-type"`
	MapKeys    []string        `json:"x-kubernetes-list-map-keys"`
	MapType    string          `json:"x-kubernetes-map-type"`
	Strategy   string          `json:"x-kubernetes-patch-strategy"`
	MergeKey   string          `json:"x-kubernetes-patch-merge-key"`
	Unions     json.RawMessage `json:"x-kubernetes-unions"`
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
