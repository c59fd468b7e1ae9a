/** The most bytes of a line that are kept; an answer has some dozens. */
const mostLineBytes = 1 << 16;

const lineFeed = 0x0a;

/**
 * Splits a kernel's stdout into lines at each line feed, and nowhere else: JSON text may hold any
 * other line separator. Of a line longer than 64 KiB the beginning is handed on as soon as there is
 * so much of it, and the rest is dropped, so that a process which never ends a line takes no memory.
 * Bytes that are no UTF-8 become U+FFFD. Blank lines are passed over.
 * @param onLine gets each line, without its end
 * @returns takes the next bytes
 */
export function createLineSplitter(onLine: (line: string) => void): (bytes: Uint8Array) => void {
  const kept = new Uint8Array(mostLineBytes);
  let length = 0;
  let isDropping = false;

  const emit = (): void => {
    const line = new TextDecoder().decode(kept.subarray(0, length)).trim();
    length = 0;
    if (line !== '') onLine(line);
  };
  const keep = (piece: Uint8Array): void => {
    if (isDropping) return;
    const fitting = piece.subarray(0, mostLineBytes - length);
    kept.set(fitting, length);
    length += fitting.length;
    if (fitting.length === piece.length) return;
    isDropping = true;
    emit();
  };
  return (bytes) => {
    let begin = 0;
    for (;;) {
      const end = bytes.indexOf(lineFeed, begin);
      keep(bytes.subarray(begin, end < 0 ? bytes.length : end));
      if (end < 0) return;
      if (!isDropping) emit();
      isDropping = false;
      begin = end + 1;
    }
  };
}
