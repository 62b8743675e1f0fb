package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Tags of the Go types declare rules (KEP-5073). declaredTable writes those of the kinds that rules.txt enforces, and of the
// structs within them, as lines of the same form. Fields that the server always drops are left out.

// declarations are the Go types of Kubernetes' API, by names such as core.v1.Pod.
type declarations struct {
	specs   map[string]*ast.TypeSpec
	tags    map[string][]string
	values  map[string][]string
	imports map[string]map[string]string
	// what rules.txt says: the kinds whose tags count, and the fields that are always dropped
	enforced []string
	dropped  map[string]bool
	// packages, each with the package whose rules it also has
	like  map[string]string
	found map[string]*rules
}

func readDeclarations(api, groups string) (*declarations, error) {
	d := &declarations{
		map[string]*ast.TypeSpec{}, map[string][]string{}, map[string][]string{}, map[string]map[string]string{},
		nil, map[string]bool{}, map[string]string{}, map[string]*rules{},
	}
	paths, err := filepath.Glob(filepath.Join(api, "*", "*", "types.go"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		d.read(packageName(filepath.Dir(path)), file)
	}
	return d, d.readRules(groups)
}

// packageName is the name of a package in the tables, such as core.v1.
func packageName(path string) string {
	return filepath.Base(filepath.Dir(path)) + "." + filepath.Base(path)
}

func (d *declarations) read(pkg string, file *ast.File) {
	d.imports[pkg] = map[string]string{}
	for _, one := range file.Imports {
		path, _ := strconv.Unquote(one.Path.Value)
		alias := filepath.Base(path)
		if one.Name != nil {
			alias = one.Name.Name
		}
		d.imports[pkg][alias] = packageName(path)
	}
	comments := file.Comments
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		// the tags of a type may stand in a comment of their own before that of the type
		before := tagsBefore(comments, general.Pos())
		comments = slices.DeleteFunc(slices.Clone(comments), func(c *ast.CommentGroup) bool { return c.Pos() < general.End() })
		for _, spec := range general.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				name := pkg + "." + spec.Name.Name
				d.specs[name], d.tags[name] = spec, before
				if fields, ok := spec.Type.(*ast.StructType); ok {
					d.tagFields(name, fields, file.Comments)
				}
			case *ast.ValueSpec:
				if general.Tok == token.CONST {
					d.readValue(pkg, spec)
				}
			}
		}
	}
}

// readValue records a constant of a type, which is declared with it or converted to it.
func (d *declarations) readValue(pkg string, spec *ast.ValueSpec) {
	of, value := spec.Type, spec.Values[0]
	if conversion, ok := value.(*ast.CallExpr); ok {
		of, value = conversion.Fun, conversion.Args[0]
	}
	named, isNamed := of.(*ast.Ident)
	literal, isLiteral := value.(*ast.BasicLit)
	if isNamed && isLiteral {
		text, _ := strconv.Unquote(literal.Value)
		d.values[pkg+"."+named.Name] = append(d.values[pkg+"."+named.Name], text)
	}
}

// tagFields records the tags in the comments between a field and the one before it.
func (d *declarations) tagFields(of string, fields *ast.StructType, comments []*ast.CommentGroup) {
	from := fields.Fields.Opening
	for _, field := range fields.Fields.List {
		within := slices.DeleteFunc(slices.Clone(comments), func(c *ast.CommentGroup) bool { return c.Pos() < from })
		if name := jsonName(field); name != "" {
			d.tags[of+" "+name] = tagsBefore(within, field.Type.Pos())
		}
		from = field.End()
	}
}

var comment = regexp.MustCompile(`\s+(#|//).*$`)

// tagsBefore returns the tags that hold: stable ones, and those that have become beta, which kube-apiserver enforces. The
// default of a field is also returned, unless it is the zero value.
func tagsBefore(comments []*ast.CommentGroup, end token.Pos) []string {
	var tags []string
	for _, group := range comments {
		for _, line := range group.List {
			text := strings.TrimSpace(strings.TrimPrefix(line.Text, "//"))
			switch {
			case line.Pos() >= end || strings.HasPrefix(text, "+k8s:alpha("):
			case zero.MatchString(text):
			case strings.HasPrefix(text, "+default="):
				tags = append(tags, text)
			case strings.HasPrefix(text, "+k8s:"):
				tags = append(tags, beta.ReplaceAllString(comment.ReplaceAllString(text, ""), ""))
			}
		}
	}
	return tags
}

var (
	beta = regexp.MustCompile(`^\+k8s:beta\([^)]*\)=`)
	zero = regexp.MustCompile(`^\+default=(0|""|false)$`)
)

func jsonName(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	tag, _ := strconv.Unquote(field.Tag.Value)
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return name
}

// readRules reads the lines `+enforced`, `gated` without a gate, and `PACKAGE like PACKAGE` of the groups' rules.txt.
func (d *declarations) readRules(groups string) error {
	paths, err := filepath.Glob(filepath.Join(groups, "*", "rules.txt"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, line := range strings.Split(string(text), "\n") {
			words := strings.Fields(line)
			switch {
			case len(words) != 3:
			case words[1] == "like":
				d.like[words[0]] = words[2]
			case words[2] == "+enforced":
				d.enforced = append(d.enforced, strings.Split(words[0], ",")...)
			case words[2] == "gated":
				for _, of := range strings.Split(words[0], ",") {
					for _, field := range strings.Split(words[1], ",") {
						d.dropped[of+" "+field] = true
					}
				}
			}
		}
	}
	for pkg, of := range d.like {
		for name := range d.specs {
			rest, isIn := strings.CutPrefix(name, pkg+".")
			if isIn && slices.Contains(d.enforced, of+"."+rest) {
				d.enforced = append(d.enforced, name)
			}
		}
		for field := range maps.Clone(d.dropped) {
			if rest, isIn := strings.CutPrefix(field, of+"."); isIn {
				d.dropped[pkg+"."+rest] = true
			}
		}
	}
	return nil
}

func (d *declarations) table() string {
	for _, kind := range d.enforced {
		d.add(kind)
	}
	out := "# The rules that tags of the Go types declare, by `cargo xtask kinds`; meta/rules.txt describes the format.\n"
	for _, name := range slices.Sorted(maps.Keys(d.found)) {
		known := &rules{}
		if split := strings.LastIndex(name, "."); d.found[d.like[name[:split]]+name[split:]] != nil {
			known = d.found[d.like[name[:split]]+name[split:]]
		}
		for _, rule := range d.found[name].order {
			isKnown := func(field string) bool { return slices.Contains(known.fields[rule], field) }
			fields := slices.DeleteFunc(slices.Clone(d.found[name].fields[rule]), isKnown)
			if len(fields) > 0 {
				out += fmt.Sprintf("%s %s +%s\n", name, strings.Join(fields, ","), rule)
			}
		}
	}
	return out
}

// rules are those of the fields of a struct, in the order in which each was first found.
type rules struct {
	order  []string
	fields map[string][]string
}

func (r *rules) add(field, rule string) {
	if _, known := r.fields[rule]; !known {
		r.order = append(r.order, rule)
	}
	r.fields[rule] = append(r.fields[rule], field)
}

// add adds the rules of a type and of those within it.
func (d *declarations) add(name string) {
	spec, known := d.specs[name]
	if d.found[name] != nil || !known {
		return
	}
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	found := &rules{nil, map[string][]string{}}
	d.found[name] = found
	discriminator := ""
	for _, field := range structure.Fields.List {
		if slices.Contains(d.tags[name+" "+jsonName(field)], "+k8s:modeDiscriminator") {
			discriminator = jsonName(field)
		}
	}
	for _, field := range structure.Fields.List {
		named := jsonName(field)
		tags := d.tags[name+" "+named]
		if d.dropped[name+" "+named] {
			continue
		}
		inner := d.typeName(name[:strings.LastIndex(name, ".")], field.Type)
		fail(fieldRules(found, named, discriminator, append(tags, d.tags[inner]...), d.values[inner]))
		if !slices.Contains(tags, "+k8s:opaqueType") {
			d.add(inner)
		}
	}
}

// typeName is the name of the type of a field, or of its items.
func (d *declarations) typeName(pkg string, of ast.Expr) string {
	switch node := of.(type) {
	case *ast.StarExpr:
		return d.typeName(pkg, node.X)
	case *ast.ArrayType:
		return d.typeName(pkg, node.Elt)
	case *ast.MapType:
		return d.typeName(pkg, node.Value)
	case *ast.Ident:
		return pkg + "." + node.Name
	case *ast.SelectorExpr:
		return d.imports[pkg][node.X.(*ast.Ident).Name] + "." + node.Sel.Name
	}
	return ""
}

// numbers are the rules with a number, by their tags.
var numbers = map[string]string{
	"maxItems": "max-items", "maxBytes": "max-bytes", "maxLength": "max-length", "minimum": "min", "maximum": "max",
}

// plain are the rules that are equal to a tag. Items may neither be added nor removed where either is forbidden.
var plain = map[string]string{
	"required": "required", "immutable": "immutable", "update=NoModify": "no-modify", "update=NoSet": "no-set",
	"update=NoUnset": "no-unset", "update=NoAddItem": "no-items", "monotonic": "monotonic", "unionMember": "union",
	"listType=set": "unique", "unique=set": "unique",
}

// ignored are tags that declare nothing, or what Rust code checks. Fields of features whose gates are off are dropped before
// they would be forbidden.
var ignored = regexp.MustCompile(`^(optional|listType=atomic|listMapKey=.*|opaqueType|customValidation|modeDiscriminator|update=NoRemoveItem` +
	`|ifDisabled\(.*\)=\+k8s:forbidden|(supports|is)Subresource.*|prerelease-lifecycle-gen:.*|deepcopy-gen:.*|validation-gen-nolint|subfield\(name\)=\+k8s:optional)$`)

var (
	ifEnabled = regexp.MustCompile(`^ifEnabled\([^)]*\)=\+k8s:`)
	ifMode    = regexp.MustCompile(`^ifMode\("(.*)"\)=\+k8s:(required|optional)$`)
)

// fieldRules adds the rules of a field with these tags, whose type has these values.
func fieldRules(to *rules, field, discriminator string, tags, values []string) error {
	var keys []string
	for _, tag := range tags {
		if key, ok := strings.CutPrefix(tag, "+k8s:listMapKey="); ok {
			keys = append(keys, key)
		}
	}
	hasDefault := slices.ContainsFunc(tags, func(tag string) bool { return strings.HasPrefix(tag, "+default=") })
	for _, tag := range tags {
		tag = ifEnabled.ReplaceAllString(strings.TrimPrefix(tag, "+k8s:"), "")
		word, value, _ := strings.Cut(tag, "=")
		format, isFormat := strings.CutPrefix(tag[strings.LastIndex(tag, ":")+1:], "format=")
		format = strings.TrimPrefix(strings.Trim(format, `"`), "k8s-")
		mode := ifMode.FindStringSubmatch(tag)
		switch {
		case strings.HasPrefix(tag, "+default="):
		case tag == "optional" && hasDefault:
			// its default has been set before
			to.add(field, "required")
		case ignored.MatchString(tag):
		case plain[tag] != "":
			to.add(field, plain[tag])
		case numbers[word] != "":
			to.add(field, numbers[word]+" "+value)
		case tag == "listType=map" || tag == "unique=map":
			to.add(field, "unique "+strings.Join(keys, ","))
		case word == "format":
			to.add(field, "format "+format)
		case word == "eachKey" && isFormat:
			to.add(field, "keys "+format)
		case word == "subfield(name)" && isFormat:
			if !slices.Contains(tags, "+k8s:subfield(name)=+k8s:optional") {
				to.add(field+".name", "required")
			}
			to.add(field+".name", "format "+format)
		case tag == "enum":
			to.add(field, "in "+strings.Join(slices.Sorted(slices.Values(values)), ","))
		case mode != nil && mode[2] == "required":
			to.add(field, "if "+discriminator+"="+mode[1])
		case mode != nil:
			to.add(field, "only-if "+discriminator+"="+mode[1])
		default:
			return fmt.Errorf("%s has a tag without a rule: %s", field, tag)
		}
	}
	return nil
}
