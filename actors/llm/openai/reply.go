package openai

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// reply is what a server said went wrong, however it said it: as the body of
// an HTTP error, as an event, or beside the choices of a chunk.
type reply struct {
	status  int    // HTTP status, or one that the code names; 0 if neither
	code    string // error code, lower case
	kind    string // error type, lower case
	message string // for people
	detail  string // further text to classify by, such as a proxy's original
}

// Error implements error. It may hold secrets; failure.go takes them out.
func (r *reply) Error() string { return r.message }

// errorObject are the members of the shapes that servers use.
type errorObject struct {
	Error    json.RawMessage `json:"error"`
	Message  json.RawMessage `json:"message"`
	Detail   json.RawMessage `json:"detail"`
	Object   looseText       `json:"object"`
	Type     looseText       `json:"type"`
	Code     looseText       `json:"code"`
	Choices  json.RawMessage `json:"choices"`
	Metadata struct {
		Raw looseText `json:"raw"` // OpenRouter: what its provider said
	} `json:"metadata"`
}

// errorIn returns the error that a chunk or a body of JSON tells, or nil if it
// tells none: an error member that holds something, an object named error, or
// an object without choices that has a message or a detail.
func errorIn(data []byte) *reply {
	if bytes.Contains(data, []byte(`"choices"`)) && !bytes.Contains(data, []byte(`"error"`)) {
		return nil // the normal case, without parsing
	}
	var o errorObject
	if data = bytes.TrimSpace(data); len(data) == 0 || data[0] != '{' || !decodeLoose(data, &o) {
		return nil
	}
	switch {
	case isTold(o.Error):
		return o.inner(data)
	case o.Object.text == "error", o.Choices == nil && (isTold(o.Message) || isTold(o.Detail)):
		return o.reply(data)
	}
	return nil
}

// replyOf returns what data says where it is known to be an error.
func replyOf(data []byte) *reply {
	if r := errorIn(data); r != nil {
		return r
	}
	var o errorObject
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '{' && decodeLoose(data, &o) {
		return o.reply(data)
	}
	return &reply{message: string(bytes.TrimSpace(data))}
}

// inner returns the error of an object's error member, a string or an object.
func (o *errorObject) inner(data []byte) *reply {
	var in errorObject
	if o.Error[0] != '{' || !decodeLoose(o.Error, &in) {
		in = errorObject{Message: o.Error}
	}
	r := in.reply(o.Error)
	if r.code == "" {
		r.setCode(o.Code.text)
	}
	if r.message == "" {
		r.message = string(data)
	}
	return r
}

func (o *errorObject) reply(data []byte) *reply {
	r := &reply{kind: strings.ToLower(o.Type.text), detail: o.Metadata.Raw.text}
	r.setCode(o.Code.text)
	for _, raw := range []json.RawMessage{o.Message, o.Detail, o.Error} {
		if isTold(raw) {
			r.message = rawText(raw)
			break
		}
	}
	if r.message == "" {
		r.message = string(bytes.TrimSpace(data))
	}
	return r
}

// setCode takes a code that is a number for a status.
func (r *reply) setCode(code string) {
	r.code = strings.ToLower(code)
	if n, err := strconv.Atoi(code); err == nil && n >= 400 && n < 600 {
		r.status = n
	}
}

// isTold reports whether an error member says that there is an error: servers
// send null, "" and false in good chunks.
func isTold(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", `""`, "false", "{}", "[]":
		return false
	}
	return true
}

// rawText returns a JSON string's value and any other value's JSON.
func rawText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
