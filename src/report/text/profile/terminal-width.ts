/** Columns of text that a profile takes. */
export const terminalWidth = 80;
