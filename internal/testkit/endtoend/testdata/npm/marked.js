import { marked } from 'marked'

export const run = () => marked.parse('# Title\n\n| a | b |\n|---|---|\n| 1 | **2** |\n\n- [x] done\n- `code` <https://example.com>\n\n```js\nx < 1\n```\n')
