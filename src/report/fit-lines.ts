import { displayWidth } from './plain-text.js';
import { wrapText } from './wrap-text.js';

/**
 * Lines that fit so many columns: a wider one is broken at spaces, and what follows is indented by two
 * more than its beginning. A line that fits stays as it is.
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
