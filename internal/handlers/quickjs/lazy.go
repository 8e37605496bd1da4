package quickjs

import "embed"

// The parts of the prelude that few scripts use are compiled when a script of a child first uses a
// global of theirs, and their bytecode is kept outside of the state that is copied for each
// invocation.

//go:embed lazy/*.js
var lazyFiles embed.FS

// nativeLoad returns the value of a part of the prelude: a function that takes natives and what the
// prelude shares.
func nativeLoad(m *vm, in arguments) value {
	name := in.s[0]
	code := m.lazy[name]
	if code == nil {
		source, err := lazyFiles.ReadFile("lazy/" + name + ".js")
		if err == nil {
			code, err = m.compileScript(string(source), preludeName)
		}
		if err != nil {
			return m.throw("%s cannot be loaded: %s", name, err)
		}
		if m.lazy == nil {
			m.lazy = map[string]*bytecode{}
		}
		m.lazy[name] = code
	}
	return m.evaluate(code)
}
