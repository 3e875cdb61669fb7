# What CI runs is `make check`; see .ci/run.

GO ?= go
FUZZTIME ?= 5s
GOLANGCI ?= golangci-lint

.PHONY: all build check test race stores vet lint conformance bench bench-smoke fuzz tidy generate clean

all: build test

build:
	$(GO) build -o bin/dsh-actor ./cmd/dsh-actor

check: build vet lint test race stores conformance bench-smoke fuzz tidy

test:
	$(GO) test ./...

race:
	$(GO) test -race -shuffle=on ./...

# Modules of their own, which build what the main one must not need.
stores:
	cd stores/pebble && $(GO) vet ./... && $(GO) test ./... && $(GO) mod tidy -diff

vet:
	@test -z "$$(gofmt -l .)" || { echo "gofmt these files:"; gofmt -l .; exit 1; }
	$(GO) vet ./...

lint:
	$(GOLANGCI) run ./...

conformance:
	$(GO) test ./internal/conformance -count=1 -v -run Conformance | grep -E 'passed|failed|FAIL|ok'

bench:
	$(GO) test ./bench -run '^$$' -bench . -benchmem

bench-smoke:
	$(GO) test ./bench -run '^$$' -bench 'W1|W2|W3|Floor' -benchtime 20x -short

fuzz:
	@for target in $$(grep -rhoE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' . | sed 's/func //' | sort -u); do \
		pkg=$$(grep -rlE "^func $$target\(" --include='*_test.go' . | head -1 | xargs dirname); \
		echo "fuzz $$pkg $$target"; \
		$(GO) test $$pkg -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x || exit 1; \
	done

tidy:
	$(GO) mod tidy -diff

generate:
	$(GO) generate ./...

clean:
	rm -rf bin
