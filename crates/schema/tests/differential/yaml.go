package main

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// The JSON of a document, or why there is none, and what strict decoding says.
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
	strict := ""
	if _, err := yaml.YAMLToJSONStrict(text); err != nil {
		strict = err.Error()
	}
	return map[string]string{"json": string(json), "strict": strict}
}
