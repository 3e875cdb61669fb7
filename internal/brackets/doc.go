// Package brackets follows the turns and steps of a log and says in words what
// does not nest. Whoever folds a log decides what that means.
package brackets
