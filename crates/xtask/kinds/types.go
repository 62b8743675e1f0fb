package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strings"

	core "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/version"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// types collects the structs that kinds are made of.
type types struct {
	scheme  *runtime.Scheme
	schemas map[string]*schema
	// names of parameters by type and field
	parameters map[string]map[string]string
	// values of enumerations by schema and property
	enums   map[string]map[string][]string
	structs map[string][]string
	// the packages of OpenAPI by those of protobuf
	packages map[string]string
	// the schemas of types that are encoded in their own way
	own map[string]string
}

// furtherTypes are published besides those of kinds: discovery, statuses, options.
var furtherTypes = []reflect.Type{
	reflect.TypeFor[meta.APIVersions](), reflect.TypeFor[meta.APIGroupList](), reflect.TypeFor[meta.APIResourceList](),
	reflect.TypeFor[meta.DeleteOptions](), reflect.TypeFor[meta.Patch](), reflect.TypeFor[meta.Status](),
	reflect.TypeFor[meta.CreateOptions](), reflect.TypeFor[meta.UpdateOptions](), reflect.TypeFor[meta.PatchOptions](),
	reflect.TypeFor[meta.GetOptions](), reflect.TypeFor[meta.ListOptions](), reflect.TypeFor[meta.TableOptions](),
	reflect.TypeFor[meta.Table](), reflect.TypeFor[meta.PartialObjectMetadata](), reflect.TypeFor[meta.PartialObjectMetadataList](),
	reflect.TypeFor[meta.WatchEvent](), reflect.TypeFor[core.PodLogOptions](), reflect.TypeFor[version.Info](),
}

func newTypes(schemas map[string]*schema, parameters map[string]map[string]string, enums map[string]map[string][]string) *types {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensions.AddToScheme(scheme))
	utilruntime.Must(apiregistration.AddToScheme(scheme))
	return &types{
		scheme: scheme, schemas: schemas, parameters: parameters, enums: enums,
		structs: map[string][]string{}, packages: map[string]string{}, own: map[string]string{},
	}
}

// addKind adds the types of a kind, its list, and its subresources.
func (t *types) addKind(r resource) error {
	gv := runtimeschema.GroupVersion{Group: r.group, Version: r.version}
	if err := t.addObject(gv.WithKind(r.kind)); err != nil {
		return err
	}
	list := gv.WithKind(r.kind + "List")
	if t.scheme.Recognizes(list) {
		if err := t.addObject(list); err != nil {
			return err
		}
	}
	for _, s := range r.subresources {
		kind := runtimeschema.GroupVersionKind{Group: s.group, Version: s.version, Kind: s.kind}
		if s.kind != "" && t.scheme.Recognizes(kind) {
			if err := t.addObject(kind); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *types) addObject(kind runtimeschema.GroupVersionKind) error {
	object, err := t.scheme.New(kind)
	if err != nil {
		return err
	}
	_, err = t.add(reflect.TypeOf(object).Elem())
	return err
}

// ownEncoding are structs whose JSON is not that of their fields; only their protobuf fields are listed.
var ownEncoding = []string{
	"meta.v1.Time", "meta.v1.MicroTime", "meta.v1.FieldsV1", "meta.v1.Patch", "resource.Quantity", "intstr.IntOrString", "runtime.RawExtension",
	"authentication.v1.AttestationValue", "authentication.v1.ExtraValue", "authorization.v1.ExtraValue", "certificates.v1.ExtraValue", "apiextensions.v1.JSON", "apiextensions.v1.JSONSchemaPropsOrBool", "apiextensions.v1.JSONSchemaPropsOrArray",
	"apiextensions.v1.JSONSchemaPropsOrStringArray",
}

// add adds a struct and all that it contains, and returns its name.
func (t *types) add(of reflect.Type) (string, error) {
	name := messageName(of)
	if _, ok := t.structs[name]; ok {
		return name, nil
	}
	published := t.schemas[schemaName(of)]
	if published == nil {
		published = &schema{}
	}
	t.packages[strings.TrimSuffix(name, "."+of.Name())] = strings.TrimSuffix(schemaName(of), "."+of.Name())
	if slices.Contains(ownEncoding, name) {
		t.own[name] = ownSchema(published)
		return name, nil
	}
	t.structs[name] = nil
	var lines []string
	for i := range of.NumField() {
		line, err := t.field(of.Field(i), published, marks{t.parameters[name], t.enums[schemaName(of)]})
		if err != nil {
			return "", fmt.Errorf("%s.%s: %w", name, of.Field(i).Name, err)
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	t.structs[name] = append([]string{name + headMarks(published)}, lines...)
	return name, nil
}

// headMarks returns what OpenAPI says of a struct.
func headMarks(published *schema) string {
	out := ""
	if published.MapType != "" {
		out += " " + published.MapType
	}
	switch len(published.Kinds) {
	case 0:
	case 1:
		out += " kind:" + published.Kinds[0].Group
	default:
		out += " kind:*"
	}
	for _, union := range published.Unions {
		var fields []string
		for field, value := range union.Fields {
			fields = append(fields, field+"="+value)
		}
		sort.Strings(fields)
		out += " union:" + union.Discriminator + ":" + strings.Join(fields, ",")
	}
	return out
}

// ownSchema returns the schema of a type that is encoded in its own way, as JSON.
func ownSchema(published *schema) string {
	out := map[string]any{}
	if published.Type != "" {
		out["type"] = published.Type
	}
	if published.Format != "" {
		out["format"] = published.Format
	}
	if len(published.OneOf) > 0 {
		out["oneOf"] = published.OneOf
	}
	text, _ := json.Marshal(out)
	return string(text)
}

// marks are facts of OpenAPI about the fields of a struct, by field.
type marks struct {
	parameters map[string]string
	enums      map[string][]string
}

// field returns the line of a field; empty for the type of an object.
func (t *types) field(field reflect.StructField, published *schema, marks marks) (string, error) {
	tag, hasTag := field.Tag.Lookup("json")
	name, options, _ := strings.Cut(tag, ",")
	if !hasTag || name == "-" || field.Name == "TypeMeta" {
		return "", nil
	}
	number := "0"
	if parts := strings.Split(field.Tag.Get("protobuf"), ","); len(parts) > 1 {
		number = parts[1]
	}
	of, isPointer := field.Type, false
	if of.Kind() == reflect.Pointer {
		of, isPointer = of.Elem(), true
	}
	if name == "" && field.Anonymous {
		inner, err := t.addEmbedded(of, published, marks.enums)
		return fmt.Sprintf("%s %s ^%s", number, field.Name, inner), err
	}
	kind, err := t.typeOf(of)
	if err != nil {
		return "", err
	}
	line := fmt.Sprintf("%s %s %s", number, name, kind)
	if printed := printMark(of, isPointer, options); printed != "" {
		line += " " + printed
	}
	if parameter := marks.parameters[name]; parameter != "" {
		line += " parameter:" + parameter
	}
	property := published.Properties[name]
	if property == nil {
		return line, nil
	}
	if property.Ref != "" {
		line += " bare"
	}
	line += enumMark(marks.enums[name])
	if slices.Contains(published.Required, name) {
		line += " required"
	}
	return line + merging(property) + defaults(property, of, isPointer), nil
}

// addEmbedded adds a struct whose fields are those of the struct around it, which is the one that is published.
func (t *types) addEmbedded(of reflect.Type, around *schema, enums map[string][]string) (string, error) {
	name := messageName(of)
	if t.schemas[schemaName(of)] == nil {
		t.schemas[schemaName(of)] = &schema{Properties: around.Properties, Required: around.Required}
		t.enums[schemaName(of)] = enums
	}
	_, err := t.add(of)
	return name, err
}

// printMark tells when JSON shows a field: `!` always, `?` a pointer that is set, `?!` a pointer even if it is null, `*` a
// struct that is not zero; without a mark unless it is empty.
func printMark(of reflect.Type, isPointer bool, options string) string {
	omits := strings.Contains(options, "omitempty")
	isStruct := of.Kind() == reflect.Struct
	switch {
	case isPointer && (omits || strings.Contains(options, "omitzero")):
		return "?"
	case isPointer:
		return "?!"
	case strings.Contains(options, "omitzero"):
		return "*"
	case isStruct || !omits:
		return "!"
	default:
		return ""
	}
}

// typeOf returns how the table shows a type: string, bool, int32, int64, double, bytes or a message; `[]` and `{}` in front
// for lists and maps; `=` and the Go name behind where that is another than the type says.
func (t *types) typeOf(of reflect.Type) (string, error) {
	switch of.Kind() {
	case reflect.String:
		return "string" + named(of, "string"), nil
	case reflect.Bool:
		return "bool" + named(of, "bool"), nil
	case reflect.Int32, reflect.Uint32:
		return "int32" + named(of, "int32"), nil
	case reflect.Int64, reflect.Uint64, reflect.Int:
		return "int64" + named(of, "int64"), nil
	case reflect.Float64:
		return "double", nil
	case reflect.Struct:
		return t.add(of)
	case reflect.Pointer:
		return t.typeOf(of.Elem())
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return "bytes", nil
		}
		if name := messageName(of); slices.Contains(ownEncoding, name) {
			return name, nil
		}
		inner, err := t.typeOf(of.Elem())
		return "[]" + inner + named(of, "[]"+of.Elem().String()), err
	case reflect.Map:
		inner, err := t.typeOf(of.Elem())
		return "{}" + inner + named(of, "map[string]"+of.Elem().String()), err
	case reflect.Interface:
		// the cells of tables
		return "runtime.RawExtension", nil
	}
	return "", fmt.Errorf("a %s has no place in the table", of)
}

func named(of reflect.Type, plain string) string {
	if of.String() == plain {
		return ""
	}
	return "=" + of.String()
}

// merging returns how a field is merged by applies and by strategic merge patches.
func merging(property *schema) string {
	out := ""
	switch property.ListType {
	case "":
	case "map":
		out += " map:" + strings.Join(property.MapKeys, ",")
	default:
		out += " " + property.ListType
	}
	if property.MapType != "" {
		out += " map-type:" + property.MapType
	}
	if property.Strategy != "" {
		out += " patch:" + property.Strategy
		if property.MergeKey != "" {
			out += ":" + property.MergeKey
		}
	}
	return out
}

// defaults returns the default of a field in its schema, unless it is that of its Go type.
func defaults(property *schema, of reflect.Type, isPointer bool) string {
	var compact bytes.Buffer
	if len(property.Default) > 0 && json.Compact(&compact, property.Default) != nil {
		return ""
	}
	text := compact.String()
	switch text {
	case "":
		return ""
	case `{}`:
		if of.Kind() == reflect.Struct && !isPointer {
			return ""
		}
	case `""`, "0", "false":
		return " default"
	}
	return " default=" + text
}

// messageName is the protobuf name of a type, such as core.v1.Pod.
func messageName(of reflect.Type) string {
	if of.PkgPath() == "" {
		return of.String()
	}
	parts := strings.Split(of.PkgPath(), "/")
	switch last := parts[len(parts)-1]; last {
	case "resource", "intstr", "runtime", "version":
		return last + "." + of.Name()
	default:
		return parts[len(parts)-2] + "." + last + "." + of.Name()
	}
}

// schemaName is the name of a type in OpenAPI documents, such as io.k8s.api.core.v1.Pod.
func schemaName(of reflect.Type) string {
	return schemaNameOf(of.PkgPath(), of.Name())
}

func schemaNameOf(path, name string) string {
	return "io." + strings.ReplaceAll(strings.Replace(path, "k8s.io/", "k8s.", 1), "/", ".") + "." + name
}

// table is types.txt.
func (t *types) table() string {
	names := make([]string, 0, len(t.structs))
	for name := range t.structs {
		names = append(names, name)
	}
	sort.Strings(names)
	var out strings.Builder
	out.WriteString("# The Go types of built-in kinds, by `cargo xtask kinds`; its format is described in mod.rs beside this file.\n")
	listPairs(&out, "package", t.packages)
	listPairs(&out, "schema", t.own)
	for _, name := range names {
		lines := t.structs[name]
		out.WriteString(lines[0] + "\n")
		for _, line := range lines[1:] {
			out.WriteString(" " + line + "\n")
		}
	}
	return out.String()
}

func listPairs(out *strings.Builder, word string, pairs map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		fmt.Fprintf(out, "%s %s %s\n", word, key, pairs[key])
	}
}
