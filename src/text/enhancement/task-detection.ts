/**
 * Detects requests to explain, summarize, translate or revise something, or for ideas. Such a task is answered in its
 * own way regardless of the topic, and two words may state it. Detected by the verb, at the start or where the language
 * places it.
 */

/** Purposes of a request, independent of the query type, that need their own instructions. */
export type Task = 'explanation' | 'summary' | 'translation' | 'revision' | 'ideas'

/** Returns the task of a prompt of a few lines; null = none. */
export function detectTask(prompt: string, language: string): Task | null {
  const verbs = verbsOf[language]
  if (verbs === undefined) return null
  const text = prompt.trim()
  const task = tasks.find(one => verbs[one].test(text)) ?? null
  return task === 'explanation' && reasons.test(text) ? null : task
}

/** More specific tasks first: an explanation inside a translation is a translation. */
const tasks: readonly Task[] = ['translation', 'summary', 'revision', 'explanation', 'ideas']

/** Questions about reasons, influences or differences, which need an analysis, not an explanation. */
const reasons =
  /(?<!\p{L})(?:why|reasons?|causes?|effects?|impacts?|influences?|consequences?|implications?|differences?|warum|weshalb|ursachen?|folgen|unterschiede?|pourquoi|causes|conséquences|différences?|por qué|causas|consecuencias|diferencias?|por que|consequências|diferenças?|perché|cause|conseguenze|differenz[ae]|waarom|oorzaken|gevolgen|verschil(?:len)?|dlaczego|przyczyny|skutki|różnic[aęe]|почему|причин\p{L}+|последстви\p{L}+|разниц\p{L}+|чому|наслідки|різниц\p{L}+|neden|nedenleri|fark\p{L}*|لماذا|أسباب|الفرق|क्यों|कारण|अंतर)(?!\p{L})|为什么|原因|影响|区别|なぜ|理由|影響|違い|왜|이유|영향|차이/iu

const verbsOf: Readonly<Record<string, Readonly<Record<Task, RegExp>>>> = {
  en: {
    translation: begins('translate|translation of'),
    summary: begins(
      'summari[sz]e|sum up|tl;?dr|(?:a |the )?(?:short |brief )?summary of|give me (?:a|the) summary of|condense',
    ),
    revision: begins(
      'proofread|rewrite|rephrase|reword|paraphrase|polish|edit|shorten|improve (?:this|my|the)|(?:fix|correct|check) (?:the |my |this )?(?:grammar|spelling|punctuation|wording)|make this (?:sound|more|less)',
    ),
    explanation: either(
      begins(
        'explain(?! how to)|tell me about|teach me(?! how to)|help me understand|how (?:do|does|did) (?!i |we |you ).{1,60} (?:work|function)(?=[?!.]*$)|how (?!to |do |does |did |can |could |should |would |i ).{1,40} works?(?=[?!.]*$)',
      ),
      ends('explained'),
    ),
    ideas: wished('ideas?|names|nicknames|titles|slogans|taglines', 'for|about', 'brainstorm'),
  },
  de: {
    translation: either(begins('übersetze?|übersetzung von'), ends('übersetzen')),
    summary: either(begins('fass(?:e)? .{0,120}zusammen|fasse|zusammenfassung'), ends('zusammenfassen')),
    revision: either(
      begins('korrigiere?|verbessere?|überarbeite|formuliere? .{0,120}um|kürze'),
      ends('korrigieren|umformulieren|überarbeiten|korrekturlesen'),
    ),
    explanation: either(begins('erklär(?:e|t)?|wie funktionier(?:t|en)'), ends('(?:einfach )?(?:erklärt|erklären)')),
    ideas: wished('(?:namens|geschenk)?ideen|namen|vorschläge|slogans', 'für|zum?|zur'),
  },
  nl: {
    translation: begins('vertaal|vertaling van'),
    summary: either(begins('vat .{0,120}samen|samenvatting'), ends('samenvatten')),
    revision: begins('verbeter|herschrijf|corrigeer|herformuleer|verkort'),
    explanation: either(begins('leg .{1,120} uit|uitleg|hoe werk(?:t|en)'), ends('uitleggen')),
    ideas: wished('ideeën|namen|slogans', 'voor'),
  },
  es: {
    translation: begins('traduce|traduzca|traducir|tradúceme|traducción de'),
    summary: begins('resume|resuma|resumir|resúmeme|resumen de'),
    revision: begins('corrige|corregir|reescribe|reformula|mejora (?:este|esta|mi)|acorta'),
    explanation: begins('explica|explique|explícame|explicar|cómo funcionan?'),
    ideas: wished('ideas|nombres|eslóganes', 'para|de'),
  },
  fr: {
    translation: begins('tradui(?:s|sez|re)|traduction d[eu]'),
    summary: begins('résume[rz]?|résumé d[eu]'),
    revision: begins('corrige[rz]?|réécri(?:s|re)|reformule[rz]?|améliore[rz]? (?:ce|cette|mon|ma)|raccourci[st]'),
    explanation: begins('explique[rz]?|comment fonctionne(?:nt)?|comment marche(?:nt)?'),
    ideas: wished('idées|noms|slogans', 'pour|de'),
  },
  pt: {
    translation: begins('traduza|traduzir|traduz|tradução de'),
    summary: begins('resuma|resumir|resume|resumo d[eoa]'),
    revision: begins('corrija|corrigir|reescreva|reformule|melhore (?:este|esta|meu|minha)|encurte'),
    explanation: begins('explique|explica|explicar|como funcionam?'),
    ideas: wished('ideias|nomes|slogans', 'para|de'),
  },
  it: {
    translation: begins('traduci|tradurre|traduzione d[ei]'),
    summary: begins('riassumi|riassumere|riassunto d[ei]|sintetizza'),
    revision: begins('correggi|riscrivi|riformula|migliora (?:questo|questa|il mio|la mia)|accorcia'),
    explanation: begins('spiega(?:mi)?|spiegare|come funzionan?o?'),
    ideas: wished('idee|nomi|slogan', 'per|di'),
  },
  pl: {
    translation: begins('przetłumacz|tłumaczenie'),
    summary: begins('streść|podsumuj|streszczenie'),
    revision: begins('popraw|przeredaguj|sparafrazuj|skróć'),
    explanation: begins('wyjaśnij|objaśnij|wytłumacz|jak działa(?:ją)?'),
    ideas: wished('pomysły|nazwy|hasła', 'na|dla'),
  },
  ru: {
    translation: begins('перевед[иё]\\p{L}*|перевести|перевод'),
    summary: begins('кратко перескажи|перескажи|резюмируй|подведи итог|сократи до главного|краткое содержание'),
    revision: begins('исправь\\p{L}*|перефразируй\\p{L}*|перепиши\\p{L}*|отредактируй\\p{L}*|улучши\\p{L}*|сократи'),
    explanation: begins('объясни\\p{L}*|поясни\\p{L}*|как (?:работа\\p{L}+|устроен\\p{L}*)'),
    ideas: wished('идеи|названия|имена|слоганы', 'для|к'),
  },
  uk: {
    translation: begins('переклади|перекладіть|перекласти|переклад'),
    summary: begins('стисло перекажи|перекажи|підсумуй|короткий зміст'),
    revision: begins('виправ\\p{L}*|перефразуй\\p{L}*|перепиши\\p{L}*|відредагуй\\p{L}*|скороти'),
    explanation: begins('поясни\\p{L}*|роз’ясни|як (?:працю\\p{L}+|влаштован\\p{L}*)'),
    ideas: wished('ідеї|назви|імена|слогани', 'для|до'),
  },
  tr: {
    translation: ends('(?:çevir|çevirin|tercüme et)'),
    summary: ends('özetle(?:yin)?|özeti'),
    revision: ends('düzelt(?:in)?|kısalt(?:ın)?'),
    explanation: ends('(?:açıkla|anlat)(?:yın|ın)?|nasıl çalışır'),
    ideas: ends('fikir(?:ler|leri)?|isim(?:ler|leri)?|öneri(?:ler|leri)?'),
  },
  ar: {
    translation: begins('ترجم|ترجمة'),
    summary: begins('لخص|لخّص|ملخص'),
    revision: begins('صحح|صحّح|أعد صياغة|دقق|نقح'),
    explanation: begins('اشرح(?: لي)?|شرح|وضح|كيف (?:يعمل|تعمل)'),
    ideas: begins('أفكار|أسماء|شعارات'),
  },
  hi: {
    translation: within('अनुवाद (?:करो|करें|कीजिए)|अनुवाद$'),
    summary: within('सारांश|संक्षेप'),
    revision: within('सुधारो|सुधारें|ठीक करो|वर्तनी जाँचो'),
    explanation: within('समझाओ|समझाइए|समझाएँ|समझाएं|कैसे काम कर\\p{L}+'),
    ideas: ends('(?:के|के लिए) (?:विचार|नाम|सुझाव)'),
  },
  zh: {
    translation: /^(?:请|帮我|请帮我)?(?:把.{1,40})?(?:翻译|译成)/,
    summary: /^(?:请|帮我|请帮我)?(?:总结|概括|摘要|归纳)/,
    revision: /^(?:请|帮我|请帮我)?(?:润色|改写|校对|修改这|缩写)/,
    explanation: /^(?:请|帮我|请帮我)?(?:解释|讲解|说明)|(?:是怎么工作的|如何运作|的原理)[？?。]?$/,
    ideas: /[想起取].{0,6}(?:名字?|口号)|(?:点子|创意|主意)[。？?]?$/,
  },
  ja: {
    translation: /(?:翻訳|訳)(?:して|してください|しろ|せよ)?[。]?$/,
    summary: /(?:要約|まとめ)(?:して|て|してください|てください)?[。]?$/,
    revision: /(?:添削|校正|書き直|言い換え|推敲)(?:して|し?て|してください|えて)?(?:ください)?[。]?$/,
    explanation: /(?:説明|解説)(?:して|してください|せよ)?[。]?$|(?:仕組み|しくみ)[。]?$/,
    ideas: /(?:アイデア|アイディア|名前)(?:を.{0,8})?[。？?]?$/,
  },
  ko: {
    translation: /^번역|번역(?:해|해줘|해 줘|해주세요|하기)?\.?$/,
    summary: /요약(?:해|해줘|해 줘|해주세요|하기)?\.?$/,
    revision: /(?:교정|첨삭|수정|맞춤법)(?:해|해줘|해 줘|해주세요| 검사)?\.?$/,
    explanation: /설명(?:해|해줘|해 줘|해주세요|하기)?\.?$|작동 원리\.?$/,
    ideas: /(?:아이디어|이름)(?:를|을)?(?: ?(?:추천|지어|제안).{0,5})?[.?]?$/,
  },
}

/** Matches a verb followed by text. */
function begins(alternatives: string): RegExp {
  return new RegExp(
    `^(?:(?:please|bitte|por favor|per favore|пожалуйста|будь ласка)[, ]+)?(?:${alternatives})(?![\\p{L}\\p{M}\\p{N}])`,
    'iu',
  )
}

/** Matches requested things after a few words at most: `party ideas`, `some names for a cat`. */
function wished(things: string, prepositions: string, openings = things): RegExp {
  const before = "(?:(?!(?:write|draft|essay|story|about|of|the|über|sobre|sur|su|over|о|про) )[\\p{L}’'-]+ ){0,4}"
  return new RegExp(`^(?:${before}(?:${things})(?: (?:${prepositions}) .+|[.!?]*$)|(?:${openings}) )`, 'iu')
}

function ends(alternatives: string): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{M}\\p{N}])(?:${alternatives})[.!?]*$`, 'iu')
}

function within(alternatives: string): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{M}])(?:${alternatives})(?![\\p{L}\\p{M}])`, 'iu')
}

function either(one: RegExp, other: RegExp): RegExp {
  return new RegExp(`${one.source}|${other.source}`, 'iu')
}
