/** A text in lines of at most so many columns, broken at spaces; a longer word has a line of its own. */
export function wrapped(text: string, columns: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const longer = `${lines.at(-1) ?? ''} ${word}`;
    if (lines.length > 0 && [...longer].length <= columns) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
