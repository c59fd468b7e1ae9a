import { displayWidth } from '../../words/index.js';

/** Spaces at which a line may end: not before a unit, and not on either side of ±. */
const breakable = /(?<!±) (?![%×±](?: |$))/u;

/** The part of a word after which a cut is best: up to the last folder of a path. */
const folders = /^.*[/\\]/u;

/** The longest beginning of a word that fits a width, but at least one character. */
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

/** Pieces of a word that fit a width, cut after a slash where there is one. */
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

/**
 * Lines that fit this number of columns: a wider one is broken at spaces, and its continuation is
 * indented by two more than its beginning. A line that fits is unchanged.
 */
export function fitLines(lines: readonly string[], columns: number): string[] {
  return lines.flatMap((line) => {
    if (displayWidth(line) <= columns) return [line];
    const indentation = /^ */.exec(line)![0];
    const [first, ...rest] = wrapText(
      line.slice(indentation.length),
      columns - indentation.length - 2,
    );
    return [indentation + first!, ...rest.map((text) => `${indentation}  ${text}`)];
  });
}

/**
 * A text in lines of at most this number of columns, broken at any space and only there: a longer word has
 * a line of its own.
 */
export function wrapAtSpaces(text: string, columns: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const longer = `${lines.at(-1) ?? ''} ${word}`;
    if (lines.length > 0 && [...longer].length <= columns) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
