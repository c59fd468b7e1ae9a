/** Characters that would break a message's single line, or rewrite the terminal that shows it. */
const unprintable =
  /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|\p{Surrogate}/gu;

/** The most characters of a name from a file that a message repeats. */
const quotedLength = 80;

/** The most names that a message lists. */
const listedNames = 20;

/** The text with control, line-breaking and direction-changing characters written as \uXXXX. */
export function printable(text: string): string {
  return text.replace(
    unprintable,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** A name taken from a file, on one line, cut after 80 characters. */
export function shortened(text: string): string {
  return printable(text.length > quotedLength ? `${text.slice(0, quotedLength)}…` : text);
}

/** A name taken from a file, in double quotes, on one line, cut after 80 characters. */
export function quoted(text: string): string {
  return `"${shortened(text)}"`;
}

/** Names in double quotes, comma-separated; after 20 of them only the number of the others. */
export function listed(names: Iterable<string>): string {
  const all = [...names];
  const shown = all.slice(0, listedNames).map(quoted).join(', ');
  return all.length > listedNames ? `${shown} and ${all.length - listedNames} more` : shown;
}

/** The beginning of a message about one tensor of one file. */
export function tensorIn(path: string, name: string): string {
  return `${printable(path)}: tensor ${quoted(name)}`;
}
