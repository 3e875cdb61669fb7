// Package archive writes sessions as one JSON document that does not depend on
// how a store keeps them, and reads such a document into any store. The format is
// described in docs/export.md; [Version] is its version.
//
// What it promises:
//
//   - A document is written and read as a stream: neither takes memory for the
//     whole of it.
//   - Nothing is put into a store before the whole document was read and found
//     right, and all sessions of a document are, or none.
//   - A document that was imported and is exported again is the same, byte for
//     byte.
package archive
