// Package pebble keeps session logs in one pebble database.
package pebble
