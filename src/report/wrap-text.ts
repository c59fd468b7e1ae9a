import { displayWidth } from './plain-text.js';

/** Spaces at which a line may end: not before a unit, and not on either side of ±. */
const breakable = /(?<!±) (?![%×±](?: |$))/u;

/** The part of a word after which it is best cut: the last folder of a path. */
const folders = /^.*[/\\]/u;

/** The longest beginning of a word that fits a width, but one character at least. */
function fittingPart(word: string, width: number): string {
  let part = '';
  let used = 0;
  for (const character of word) {
    used += displayWidth(character);
    if (used > width && part !== '') break;
    part += character;
  }
  return part;
}

/** Pieces of a word that fit a width, cut behind a slash where there is one. */
function cutWord(word: string, width: number): string[] {
  const pieces: string[] = [];
  let rest = word;
  while (displayWidth(rest) > width) {
    const part = fittingPart(rest, width);
    const piece = folders.exec(part)?.[0] ?? part;
    if (piece.length === rest.length) break;
    pieces.push(piece);
    rest = rest.slice(piece.length);
  }
  return [...pieces, rest];
}

/**
 * Breaks a text into lines of at most `width` terminal columns, at spaces, and within words only
 * where a word alone is wider. At least one line; `width` below 2 counts as 2, the widest character.
 */
export function wrapText(text: string, width: number): string[] {
  const room = Math.max(2, width);
  const lines: string[] = [];
  let line: string | null = null;
  for (const word of text.split(breakable)) {
    const joined: string = line === null ? word : `${line} ${word}`;
    if (displayWidth(joined) <= room) line = joined;
    else {
      const pieces = cutWord(word, room);
      lines.push(...(line === null ? [] : [line]), ...pieces.slice(0, -1));
      line = pieces.at(-1)!;
    }
  }
  return [...lines, line ?? ''];
}
