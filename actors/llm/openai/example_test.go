package openai_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/dsh-actor/dsh-actor/actors/llm/openai"
	"github.com/dsh-actor/dsh-actor/dsh"
)

func Example() {
	// A server that answers every request alike, in place of a real one.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `data: {"choices":[{"delta":{"reasoning_content":"a greeting"}}]}

data: {"choices":[{"delta":{"content":"Good "}}]}

data: {"choices":[{"delta":{"content":"day."}}]}

data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":5}}

data: [DONE]

`)
	}))
	defer server.Close()

	provider, err := openai.New(openai.Options{BaseURL: server.URL, APIKey: "none"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer provider.CloseIdleConnections()
	request := &dsh.Request{
		Header:   &dsh.Header{Config: dsh.CallConfig{Model: "a-model"}},
		Messages: []*dsh.Message{dsh.UserText("Hello!")},
	}
	for chunk, err := range provider.Stream(context.Background(), request) {
		switch c := chunk.(type) {
		case nil:
			fmt.Println("failed:", dsh.AsFailure(err).Code)
		case dsh.TextDelta:
			fmt.Printf("text %q\n", c.Text)
		case dsh.Usage:
			fmt.Println(c.InputTokens, "in,", c.OutputTokens, "out")
		case dsh.Finish:
			fmt.Println("finished:", c.Reason.Kind)
		}
	}
	// Output:
	// text "Good "
	// text "day."
	// 9 in, 5 out
	// finished: stop
}
