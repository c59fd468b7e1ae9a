import { RequestError } from '../request-error.js';

/** The outcome of a judgement: `NOT JUDGED` is neither a pass nor a failure, as nothing was held against a bound. */
export type VerdictStatus = 'PASS' | 'FAIL' | 'NOT JUDGED';

/** The status and the sentence of a verdict; the sentence begins with the status and a colon. */
export interface StatedVerdict {
  readonly status: VerdictStatus;
  readonly sentence: string;
}

/** A verdict's status and sentence from its reason, which ends with a full stop. */
export function stated(status: VerdictStatus, reason: string): StatedVerdict {
  return { status, sentence: `${status}: ${reason}` };
}

/** A text with a capital letter at its beginning. */
export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The reason in a verdict's sentence: all behind its status. */
export function reasonOf({ status, sentence }: StatedVerdict): string {
  return sentence.slice(status.length + 2);
}

/** The reason in a verdict's sentence without its full stop, to go on from. */
export function reasonClause(verdict: StatedVerdict): string {
  return reasonOf(verdict).replace(/\.$/, '');
}

/**
 * A whole number given as text, from `least` on.
 * @throws RequestError for anything else
 */
export function parseWhole(text: string, name: string, least: number): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isSafeInteger(value) || value < least)
    throw new RequestError(
      `${name} is ${JSON.stringify(text)}; give a whole number${least > Number.MIN_SAFE_INTEGER ? ` from ${least}` : ''}`,
    );
  return value;
}

/** The longest name that is compared; a longer one is no slip of the keyboard. */
const comparedLength = 200;

/** The most names that are compared with a missing one. */
const comparedNames = 10_000;

/** Levenshtein distance: the fewest insertions, deletions and substitutions from `a` to `b`. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const substitution = previous[column - 1] + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(substitution, previous[column] + 1, current[column - 1] + 1));
    }
    previous = current;
  }
  return previous[b.length];
}

/**
 * The known name that a mistyped one most likely stands for: equal but for case, or else the one at
 * the least edit distance when that is at most a third of its length. Null when none is close.
 */
export function nearestName(mistyped: string, known: Iterable<string>): string | null {
  if (mistyped.length > comparedLength) return null;
  let nearest: string | null = null;
  let least = Infinity;
  let compared = 0;
  for (const name of known) {
    if (++compared > comparedNames) break;
    if (name.length > comparedLength) continue;
    if (name.toLowerCase() === mistyped.toLowerCase()) return name;
    const distance = editDistance(mistyped, name);
    if (distance < least && distance * 3 <= Math.max(name.length, mistyped.length)) {
      nearest = name;
      least = distance;
    }
  }
  return nearest;
}

/**
 * Known names that a mistyped one may stand for, the nearest first: those at an edit distance of at most half their length, and those
 * that have it in them.
 */
export function nearNames(mistyped: string, known: readonly string[], most: number): string[] {
  if (mistyped.length > comparedLength) return [];
  return known
    .slice(0, comparedNames)
    .map((name) => ({ name, distance: editDistance(mistyped.toLowerCase(), name.toLowerCase()) }))
    .filter(
      ({ name, distance }) =>
        distance * 2 <= Math.max(name.length, mistyped.length) ||
        (mistyped.length > 2 && name.includes(mistyped.toLowerCase())),
    )
    .sort((a, b) => a.distance - b.distance)
    .slice(0, most)
    .map(({ name }) => name);
}

/** "; did you mean base-2", behind what is said of a name that is none of the known ones; empty where none is close. */
export function nearClause(mistyped: string, known: Iterable<string>): string {
  const nearest = nearestName(mistyped, known);
  return nearest === null ? '' : `; did you mean ${nearest}`;
}

/**
 * Characters that act on whatever shows them instead of being shown: controls, format and
 * direction marks, line and paragraph separators, lone surrogates, and the noncharacters that XML 1.0
 * rules out.
 */
const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\ufffe\uffff]/gu;

/** The text on one line, with each character that is not to be shown as is written as \u{hex}. */
export function plainText(text: string): string {
  return text.replace(unprintable, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

/** Marks that combine with the character before them. */
const combining = /^[\p{Mn}\p{Me}]$/u;

/** East Asian wide and fullwidth characters (Unicode UAX #11, by script) and emoji. */
const wide =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\p{Script=Yi}\p{Script=Tangut}\p{Script=Nushu}\p{Emoji_Presentation}\u3000-\u303e\u3100-\u33ff\ufe10-\ufe6f\uff01-\uff60\uffe0-\uffe6]$/u;

/**
 * Terminal columns that a plain text takes. An upper bound: emoji sequences and halfwidth forms that
 * some terminals draw narrower count in full.
 */
export function displayWidth(text: string): number {
  let width = 0;
  for (const character of text)
    width += combining.test(character) ? 0 : wide.test(character) ? 2 : 1;
  return width;
}

/** "dQ, dK and dV" */
export function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
