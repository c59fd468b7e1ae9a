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
