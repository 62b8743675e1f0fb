package main

import (
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// Returns the possible results of decoding a document to JSON and the error of strict decoding, or the error.
func document(text []byte) (said any) {
	defer func() {
		if why := recover(); why != nil {
			said = map[string]string{"panic": fmt.Sprint(why)}
		}
	}()
	json, err := yaml.YAMLToJSON(text)
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	// of keys that become equal only as JSON, such as 1 and 1.0, the order of a Go map decides
	results := []string{string(json)}
	for range 12 {
		if again, err := yaml.YAMLToJSON(text); err == nil && !slices.Contains(results, string(again)) {
			results = append(results, string(again))
		}
	}
	strict := ""
	if _, err := yaml.YAMLToJSONStrict(text); err != nil {
		strict = err.Error()
	}
	return map[string]any{"json": results, "strict": strict}
}

// Returns a value in YAML.
func encoded(value []byte) string {
	text, err := yaml.JSONToYAML(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}
