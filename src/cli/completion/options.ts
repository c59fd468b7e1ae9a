import { commandRow } from '../options/command-rows.js';

/** The shells that completion is written for. */
export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

const details = `
Examples:
  flashproof completion bash > \\
    ~/.local/share/bash-completion/completions/flashproof
  flashproof completion zsh > "\${fpath[1]}/_flashproof"
  flashproof completion fish > ~/.config/fish/completions/flashproof.fish

For this shell only: source <(flashproof completion bash)

Exit status: 0 done, 2 the request is wrong.`;

/** `flashproof completion`, which describes the program that it is registered with. */
export const completionCommand = commandRow({
  name: 'completion',
  description: 'print a script that completes flashproof commands in a shell',
  arguments: [{ syntax: '<shell>', description: 'the shell to write it for', choices: shells }],
  options: {},
  details,
});
