package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
	"go.yaml.in/yaml/v3"
)

// Dir and File are where a file is: in a project, and for the user in the home
// directory or, as File alone, in DSH_ACTOR_HOME.
const (
	Dir  = ".dsh-actor"
	File = "config.yaml"

	envPrefix = "DSH_ACTOR_"
	envHome   = envPrefix + "HOME"
)

// Sources are where a configuration comes from.
type Sources struct {
	// CWD is the project's directory; empty for no project.
	CWD string
	// Env looks a variable up; empty means unset.
	Env func(string) string
	// Flags hold values of flags that were given, by key.
	Flags map[string]any
}

// Loaded is a configuration and what it was made of.
type Loaded struct {
	Config
	// Files are those that were read, the user's first.
	Files []string

	env     func(string) string
	project map[string]any // the project's file alone
}

// Home returns the user's own directory, or "" if there is no home: DSH_ACTOR_HOME
// or the one in the home directory.
func Home(env func(string) string) string {
	if home := env(envHome); home != "" {
		return home
	}
	if home := homeDirectory(env); home != "" {
		return filepath.Join(home, Dir)
	}
	return ""
}

func homeDirectory(env func(string) string) string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home := env(name); home != "" {
			return home
		}
	}
	return ""
}

// home begins a path in the home directory.
const home = "~/"

// SessionsDir returns where sessions are, or "" if nothing says so.
func (l *Loaded) SessionsDir() string {
	dir := l.Sessions.Dir
	if rest, ok := strings.CutPrefix(dir, home); ok {
		return filepath.Join(homeDirectory(l.env), rest)
	}
	return dir
}

// userFile returns the user's file, or "" if there is no home.
func (s Sources) userFile() string {
	if home := Home(s.Env); home != "" {
		return filepath.Join(home, File)
	}
	return ""
}

// layers is a delimiter that no key holds: names of models have dots.
const delimiter = "\x1f"

// Load reads all layers and reports every problem at once.
func Load(s Sources) (*Loaded, error) {
	l := &Loaded{env: s.Env}
	k := koanf.New(delimiter)
	load := func(m map[string]any) error { return k.Load(confmap.Provider(m, ""), nil) }
	errs := []error{load(defaults())}
	user := s.userFile()
	project := ""
	if s.CWD != "" {
		project = filepath.Join(s.CWD, Dir, File)
	}
	for _, path := range []string{user, project} {
		if path == "" || path == project && user == project && len(l.Files) > 0 {
			continue
		}
		m, err := readFile(path, path == project && path != user)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			errs = append(errs, err)
			continue
		case path == project && path != user:
			l.project = m
		}
		l.Files = append(l.Files, path)
		errs = append(errs, load(m))
	}
	fromEnv, err := environment(s.Env)
	errs = append(errs, err, load(fromEnv), load(s.Flags))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := k.Unmarshal("", &l.Config); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return l, nil
}

// readFile returns what a file holds, checked.
func readFile(path string, project bool) (map[string]any, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(path, raw, project)
}

func parse(path string, raw []byte, project bool) (map[string]any, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if doc.Kind == 0 {
		return nil, nil // nothing but comments
	}
	c := checker{path: path, project: project}
	c.check(doc.Content[0], reflect.TypeFor[Config](), "")
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	var m map[string]any
	if err := doc.Decode(&m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// environment reads DSH_ACTOR_<KEY> for each key that is a plain value outside
// the providers; a dot in the key is an underscore in the name.
func environment(env func(string) string) (map[string]any, error) {
	var errs []error
	var read func(t reflect.Type, prefix string) map[string]any
	read = func(t reflect.Type, prefix string) map[string]any {
		out := map[string]any{}
		for i := range t.NumField() {
			f := t.Field(i)
			key := f.Tag.Get("koanf")
			name := prefix + strings.ToUpper(key)
			switch kind := f.Type.Kind(); {
			case kind == reflect.Map:
			case kind == reflect.Struct:
				if in := read(f.Type, name+"_"); len(in) > 0 {
					out[key] = in
				}
			case env(name) != "":
				v, err := scalar(&yaml.Node{Kind: yaml.ScalarNode, Value: env(name)}, f.Type)
				if err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", name, err))
				}
				out[key] = v
			}
		}
		return out
	}
	out := read(reflect.TypeFor[Config](), envPrefix)
	return out, errors.Join(errs...)
}
