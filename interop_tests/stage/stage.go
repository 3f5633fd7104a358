// Package stage is what all programs in Go of the tests share: it plays the scenes that a test asks for on the standard
// input, one line of JSON each, and answers on the standard output (interop_tests/driver.py says in which words). Any
// number of scenes go on at once.
package stage

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"
)

const awaitSeconds = 120

// Families are the scenes that a program has, by name. A scene returns what was seen, or panics with an error: Must and
// Check do that.
type Families map[string]func(scene *Scene) any

// A Scene has a server, a fresh topic, and a test to talk to.
type Scene struct {
	URL, Topic string
	Ctx        context.Context
	id         int64
	args       map[string]any
	heard      chan string
}

type request struct {
	ID     int64
	Family string
	URL    string
	Topic  string
	Args   map[string]any
	Tell   *string
}

// Play until the input ends.
func Play(families Families) {
	var lock sync.Mutex
	playing := map[int64]*Scene{}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var asked request
		Check(json.Unmarshal(lines.Bytes(), &asked))
		lock.Lock()
		scene := playing[asked.ID]
		if asked.Tell == nil {
			scene = &Scene{asked.URL, asked.Topic, nil, asked.ID, asked.Args, make(chan string, 100)}
			playing[asked.ID] = scene
			go func() {
				play(scene, families[asked.Family])
				lock.Lock()
				defer lock.Unlock()
				delete(playing, scene.id)
			}()
		} else if scene != nil {
			scene.heard <- *asked.Tell
		}
		lock.Unlock()
	}
}

func play(scene *Scene, family func(*Scene) any) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(scene.Number("seconds", 50))*time.Second)
	defer cancel()
	scene.Ctx = ctx
	defer func() {
		if failed := recover(); failed != nil {
			say(map[string]any{"id": scene.id, "error": fmt.Sprint(failed), "trace": string(debug.Stack())})
		}
	}()
	say(map[string]any{"id": scene.id, "result": family(scene)})
}

var saying sync.Mutex

func say(answer map[string]any) {
	line := Must(json.Marshal(answer))
	saying.Lock()
	defer saying.Unlock()
	Must(os.Stdout.Write(append(line, '\n')))
}

// Number that the test gave, or the other one.
func (scene *Scene) Number(name string, otherwise int) int {
	if given, ok := scene.args[name].(float64); ok {
		return int(given)
	}
	return otherwise
}

// Text that the test gave, or the other one.
func (scene *Scene) Text(name, otherwise string) string {
	if given, ok := scene.args[name].(string); ok {
		return given
	}
	return otherwise
}

// Flag that the test gave, or false.
func (scene *Scene) Flag(name string) bool {
	given, _ := scene.args[name].(bool)
	return given
}

// Tell the test something.
func (scene *Scene) Tell(name string, value any) {
	say(map[string]any{"id": scene.id, "told": name, "value": value})
}

// Await that the test says so.
func (scene *Scene) Await(name string) {
	select {
	case heard := <-scene.heard:
		if heard != name {
			panic(fmt.Errorf("waited for %s, heard %s", name, heard))
		}
	case <-time.After(awaitSeconds * time.Second):
		panic(fmt.Errorf("nobody said %s", name))
	}
}

// Until it is so, look again every few milliseconds.
func (scene *Scene) Until(what string, so func() bool) {
	for !so() {
		if scene.Ctx.Err() != nil {
			panic(fmt.Errorf("%s: not in time", what))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Must have worked.
func Must[Value any](value Value, err error) Value {
	Check(err)
	return value
}

// Check that it worked.
func Check(err error) {
	if err != nil {
		panic(err)
	}
}

// ErrorOf an action in words, or "none".
func ErrorOf(err error) string {
	if err == nil {
		return "none"
	}
	return err.Error()
}

// Heard is what the test says, as it comes.
func (scene *Scene) Heard() <-chan string {
	return scene.heard
}
