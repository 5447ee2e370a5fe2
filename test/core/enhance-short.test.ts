/** Very short prompts, analyzed and enhanced like those of requests: the added lines, and the prompts that stay unchanged. */
import { describe, expect, test } from 'bun:test'
import type { QueryType } from '../../src/core/chat/chat.ts'
import { enhancePrompt, type Task } from '../../src/text/enhancement/enhance.ts'
import texts from '../../src/text/enhancement/enhancements.json'
import { openPromptAnalyzer } from '../../src/text/readers.ts'

type Lines = Readonly<Record<string, Readonly<Record<string, string>>>>
const enhancements: Readonly<Record<string, Readonly<Record<'lines' | 'tasks', Lines>>>> = texts
const read = openPromptAnalyzer().read
const analyzeText = (text: string) => read([{ role: 'user', content: [{ type: 'text', text }], name: null }])

/** In the language named before the prompts; by type or task. */
const gaining: Readonly<Record<Exclude<QueryType, 'other'> | Task, Readonly<Record<string, readonly string[]>>>> = {
  code: {
    en: ['css center image', 'write function', 'excel sum formula'],
    de: ['Python Datei lesen', 'Skript für Python schreiben'],
    fr: ['trier liste python'],
    ru: ['python отсортировать список'],
  },
  code_algorithm: {
    en: ['sort list python', 'implement quicksort', 'binary search python', 'dijkstra in java'],
    zh: ['python 排序列表'],
  },
  debugging: { en: ['docker container keeps crashing', 'npm install fails', 'cors error express', 'debug this'] },
  analysis: { en: ['impact of tourism', 'analyze french revolution', 'Why did Rome fall?'] },
  writing: {
    en: ['cover letter nurse', 'write email', 'essay on democracy', 'farewell speech'],
    de: ['Bewerbung schreiben'],
    es: ['carta de renuncia'],
    fr: ['lettre de motivation'],
    it: ['lettera di dimissioni'],
    ko: ['자기소개서 써줘'],
  },
  math: { en: ['solve 3x+5=20', 'integrate x^2', 'derivative of sin(x)'] },
  creative: {
    en: ['write poem', 'haiku about rain', 'dragon story'],
    es: ['escribe un poema'],
    pl: ['napisz bajkę'],
    uk: ['напиши вірш'],
    tr: ['şiir yaz'],
    ar: ['اكتب قصيدة'],
    hi: ['कविता लिखो'],
    zh: ['写首诗'],
    ja: ['詩を書いて'],
  },
  planning: {
    en: ['plan trip', 'weekly meal plan', 'itinerary for Rome', 'marketing plan'],
    de: ['Reiseplan Rom'],
    fr: ['plan de voyage'],
    zh: ['旅行计划'],
  },
  comparison: {
    en: ['cats vs dogs', 'react or vue', 'compare phones'],
    fr: ['chien ou chat'],
    es: ['perros vs gatos'],
  },
  explanation: {
    en: ['explain recursion', 'explain quantum entanglement', 'how does wifi work', 'explain git rebase'],
    de: ['erkläre Inflation'],
    fr: ['explique la photosynthèse'],
    pt: ['explica fotossíntese'],
    nl: ['leg fotosynthese uit'],
    ja: ['再帰を説明して'],
    hi: ['गुरुत्वाकर्षण समझाओ'],
  },
  summary: { en: ['summarize this', 'summarize hamlet'], es: ['resume este texto'], ja: ['要約して'] },
  translation: {
    en: ['translate hello', 'translate this to German'],
    de: ['übersetze hallo'],
    ru: ['переведи привет'],
  },
  ideas: { en: ['band name ideas', 'fantasy plot idea'] },
  revision: { en: ['proofread my essay', 'rewrite this politely', 'fix grammar'] },
}

describe('enhance on short demanding prompts', () => {
  test.each(Object.entries(gaining))('adds the lines of %s', (kind, byLanguage) => {
    for (const [language, prompts] of Object.entries(byLanguage))
      for (const prompt of prompts) expect([prompt, findKind(prompt)]).toEqual([prompt, `${language} ${kind}`])
  })

  test.each(['python sort list', 'list sort python', 'python list sort'])('adds lines of programs to %s', prompt => {
    expect(['en code', 'en code_algorithm']).toContain(findKind(prompt) ?? '')
  })
})

/** Returns which lines an enhanced prompt got; null = none. */
function findKind(prompt: string): string | null {
  const scan = analyzeText(prompt)
  const { changed, prompt: enhanced } = enhancePrompt(prompt, scan)
  const words = enhancements[scan.language]
  if (!changed || words === undefined) return null
  const [kind = null] =
    Object.entries({ ...words.lines, ...words.tasks }).find(([, lines]) =>
      Object.values(lines).every(line => enhanced.includes(line)),
    ) ?? []
  return `${scan.language} ${kind}`
}

const staying: Readonly<Record<string, readonly string[]>> = {
  'one word': ['recursion', 'python', 'Berlin', 'poem', 'photosynthesis', '再帰', '诗'],
  'a name': ['Marie Curie', 'The Lord of the Rings', 'Visual Studio Code', 'Spring Boot', 'Juan Carlos', '東京タワー'],
  'a courtesy': ['good night', 'see you tomorrow', 'ok thanks', 'merci beaucoup', 'большое спасибо', 'до завтра'],
  'a remark': ['you are wrong', 'not what I meant', 'sounds good', 'why not', 'I am bored', 'что нового', 'de acuerdo'],
  'a word on the answer before': [
    'make it shorter',
    'tell me more',
    'try again',
    'the second one',
    'in Spanish',
    'option 2',
  ],
  'a fact': [
    'capital of Peru',
    'speed of light',
    'distance to the moon',
    'author of Dracula',
    '法国首都',
    'wer ist Goethe',
  ],
  'what holds now': ['weather tomorrow', 'weather Paris', 'bitcoin price', 'time in Tokyo'],
  'a word looked up': [
    'define serendipity',
    'synonym for happy',
    'opposite of hot',
    'rhyme with orange',
    'plural of ox',
  ],
  'a sum': ['12*7', '15% of 80', 'half of 90', '5 km in miles', '100 usd to eur', 'sqrt(16)', '2 más 2'],
  'a program': [
    'for i in range(10)',
    'const x = 1',
    'print("hi")',
    'def add(a, b):',
    'npm run build',
    'ls -la',
    'x => x + 1',
  ],
}

describe('enhance on short simple prompts', () => {
  test.each(Object.entries(staying))('returns unchanged: %s', (_, prompts) => {
    expect(prompts.filter(prompt => enhancePrompt(prompt, analyzeText(prompt)).changed)).toEqual([])
  })
})
