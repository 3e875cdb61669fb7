// Package words says in few words what logs hold, for people: numbers, times,
// token counts, calls and their results. All of it is plain text on one line;
// [Printable] is what keeps a terminal safe from what a log may hold.
package words
