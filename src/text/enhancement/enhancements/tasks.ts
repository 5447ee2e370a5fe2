import type { TaskLines } from './language.ts'

/** By ISO 639-1. */
export const taskLines = {
  en: {
    explanation: {
      format: 'the core idea first, then a concrete example.',
      scope: 'what it is, how it works and why it matters.',
      check: 'name a common misunderstanding.',
    },
    summary: {
      format: 'the main points first, in a few short lines.',
      scope: 'only what the source says; keep names and figures.',
    },
    translation: {
      format: 'the translation first, then a note where it could be read otherwise.',
      scope: 'where no language is named, the likeliest; say which.',
      constraints: 'keep meaning, tone and names.',
    },
    revision: {
      format: 'the full revised text, then the main changes.',
      constraints: 'keep meaning, facts and voice.',
    },
    ideas: {
      format: 'several distinct options, each with a few words on why it fits.',
      scope: 'different directions, not variants of one.',
    },
  },
  de: {
    explanation: { format: 'zuerst der Kern, dann ein greifbares Beispiel.', scope: 'was es ist und wie es wirkt.' },
    summary: {
      format: 'das Wichtigste zuerst, in wenigen kurzen Zeilen.',
      scope: 'nur, was die Quelle sagt; Namen und Zahlen erhalten.',
    },
    translation: {
      format: 'zuerst die Übersetzung, dann ein Hinweis, wo sie mehrdeutig ist.',
      scope: 'ist keine Sprache genannt, die wahrscheinlichste nennen.',
      constraints: 'Sinn, Ton und Namen erhalten.',
    },
    revision: {
      format: 'der ganze überarbeitete Text, dann die wichtigsten Änderungen.',
      constraints: 'Sinn, Angaben und Stimme erhalten.',
    },
    ideas: {
      format: 'mehrere deutlich verschiedene Vorschläge, je mit kurzer Begründung.',
      scope: 'verschiedene Richtungen statt Abwandlungen.',
    },
  },
  nl: {
    explanation: { format: 'eerst de kern, dan een concreet voorbeeld.', scope: 'wat het is en hoe het werkt.' },
    summary: {
      format: 'de hoofdpunten eerst, in enkele korte regels.',
      scope: 'alleen wat de bron zegt; behoud namen en cijfers.',
    },
    translation: {
      format: 'eerst de vertaling, dan een opmerking waar ze dubbelzinnig is.',
      scope: 'is er geen taal genoemd, noem dan de gekozen taal.',
      constraints: 'behoud betekenis, toon en namen.',
    },
    revision: {
      format: 'de volledige herziene tekst, dan de belangrijkste wijzigingen.',
      constraints: 'behoud betekenis, feiten en stem.',
    },
    ideas: {
      format: 'enkele duidelijk verschillende opties, elk met een korte reden.',
      scope: 'verschillende richtingen, geen varianten.',
    },
  },
  es: {
    explanation: {
      format: 'primero la idea central y después un ejemplo concreto.',
      scope: 'qué es y cómo funciona.',
    },
    summary: {
      format: 'primero lo principal, en pocas líneas.',
      scope: 'solo lo que dice la fuente; conserva nombres y cifras.',
    },
    translation: {
      format: 'primero la traducción, después una nota donde sea ambigua.',
      scope: 'si no se nombra un idioma, di cuál se eligió.',
      constraints: 'conserva sentido, tono y nombres.',
    },
    revision: {
      format: 'el texto revisado completo y después los cambios principales.',
      constraints: 'conserva sentido, datos y voz.',
    },
    ideas: {
      format: 'varias opciones distintas, cada una con un breve motivo.',
      scope: 'direcciones diferentes, no variantes.',
    },
  },
  fr: {
    explanation: {
      format: 'l’idée centrale d’abord, puis un exemple concret.',
      scope: 'ce que c’est et comment cela marche.',
    },
    summary: {
      format: 'l’essentiel d’abord, en quelques lignes.',
      scope: 'seulement ce que dit la source ; garde noms et chiffres.',
    },
    translation: {
      format: 'd’abord la traduction, puis une note si elle est ambiguë.',
      scope: 'si aucune langue n’est nommée, dis laquelle est choisie.',
      constraints: 'garde le sens, le ton et les noms.',
    },
    revision: {
      format: 'le texte révisé en entier, puis les principaux changements.',
      constraints: 'garde le sens, les faits et la voix.',
    },
    ideas: {
      format: 'plusieurs options distinctes, chacune avec une brève raison.',
      scope: 'des directions différentes, pas des variantes.',
    },
  },
  pt: {
    explanation: { format: 'primeiro a ideia central, depois um exemplo concreto.', scope: 'o que é e como funciona.' },
    summary: {
      format: 'primeiro o principal, em poucas linhas.',
      scope: 'só o que a fonte diz; mantenha nomes e números.',
    },
    translation: {
      format: 'primeiro a tradução, depois uma nota onde for ambígua.',
      scope: 'se nenhum idioma for indicado, diga qual foi escolhido.',
      constraints: 'mantenha sentido, tom e nomes.',
    },
    revision: {
      format: 'o texto revisto completo, depois as principais mudanças.',
      constraints: 'mantenha sentido, fatos e voz.',
    },
    ideas: {
      format: 'várias opções distintas, cada uma com um breve motivo.',
      scope: 'direções diferentes, não variantes.',
    },
  },
  it: {
    explanation: { format: 'prima l’idea centrale, poi un esempio concreto.', scope: 'che cos’è e come funziona.' },
    summary: {
      format: 'prima l’essenziale, in poche righe.',
      scope: 'solo ciò che dice la fonte; conserva nomi e cifre.',
    },
    translation: {
      format: 'prima la traduzione, poi una nota dove è ambigua.',
      scope: 'se nessuna lingua è indicata, di’ quale è stata scelta.',
      constraints: 'conserva senso, tono e nomi.',
    },
    revision: {
      format: 'il testo rivisto per intero, poi le modifiche principali.',
      constraints: 'conserva senso, fatti e voce.',
    },
    ideas: {
      format: 'diverse opzioni distinte, ciascuna con un breve motivo.',
      scope: 'direzioni diverse, non varianti.',
    },
  },
  pl: {
    explanation: { format: 'najpierw sedno, potem konkretny przykład.', scope: 'czym to jest i jak działa.' },
    summary: {
      format: 'najpierw to, co najważniejsze, w kilku krótkich zdaniach.',
      scope: 'tylko to, co mówi źródło; zachowaj nazwy i liczby.',
    },
    translation: {
      format: 'najpierw tłumaczenie, potem uwaga tam, gdzie jest niejednoznaczne.',
      scope: 'jeśli nie podano języka, powiedz, jaki wybrano.',
      constraints: 'zachowaj sens, ton i nazwy.',
    },
    revision: {
      format: 'cały poprawiony tekst, potem główne zmiany.',
      constraints: 'zachowaj sens, fakty i styl.',
    },
    ideas: {
      format: 'kilka wyraźnie różnych propozycji, każda z krótkim uzasadnieniem.',
      scope: 'różne kierunki, nie odmiany jednego.',
    },
  },
  ru: {
    explanation: { format: 'сначала суть, затем наглядный пример.', scope: 'что это и как это работает.' },
    summary: {
      format: 'сначала главное, в нескольких коротких строках.',
      scope: 'только то, что есть в источнике; сохрани имена и числа.',
    },
    translation: {
      format: 'сначала перевод, затем примечание там, где он неоднозначен.',
      scope: 'если язык не назван, скажи, какой выбран.',
      constraints: 'сохрани смысл, тон и имена.',
    },
    revision: {
      format: 'весь исправленный текст, затем главные изменения.',
      constraints: 'сохрани смысл, факты и стиль.',
    },
    ideas: {
      format: 'несколько разных вариантов, у каждого краткое пояснение.',
      scope: 'разные направления, а не вариации одного.',
    },
  },
  uk: {
    explanation: { format: 'спочатку суть, потім наочний приклад.', scope: 'що це і як це працює.' },
    summary: {
      format: 'спочатку головне, у кількох коротких рядках.',
      scope: 'лише те, що є в джерелі; збережи імена та числа.',
    },
    translation: {
      format: 'спочатку переклад, потім примітка там, де він неоднозначний.',
      scope: 'якщо мову не названо, скажи, яку обрано.',
      constraints: 'збережи зміст, тон та імена.',
    },
    revision: {
      format: 'увесь виправлений текст, потім головні зміни.',
      constraints: 'збережи зміст, факти та стиль.',
    },
    ideas: {
      format: 'кілька різних варіантів, у кожного коротке пояснення.',
      scope: 'різні напрями, а не варіації одного.',
    },
  },
  tr: {
    explanation: { format: 'önce ana fikir, sonra somut bir örnek.', scope: 'ne olduğu ve nasıl işlediği.' },
    summary: {
      format: 'önce ana noktalar, kısa satırlar hâlinde.',
      scope: 'yalnızca kaynağın söyledikleri; adları ve sayıları koru.',
    },
    translation: {
      format: 'önce çeviri, sonra belirsiz yerler için bir not.',
      scope: 'dil belirtilmemişse hangisinin seçildiğini söyle.',
      constraints: 'anlamı, tonu ve adları koru.',
    },
    revision: {
      format: 'düzeltilmiş metnin tamamı, sonra başlıca değişiklikler.',
      constraints: 'anlamı, bilgileri ve üslubu koru.',
    },
    ideas: {
      format: 'birbirinden farklı birkaç öneri, her birinin kısa gerekçesi.',
      scope: 'tek bir fikrin çeşitlemeleri değil, farklı yönler.',
    },
  },
  zh: {
    explanation: { format: '先讲核心思想，再举具体例子。', scope: '它是什么、如何运作、为何重要。' },
    summary: { format: '先列要点，用简短的几行。', scope: '只写原文所说，保留名称和数字。' },
    translation: {
      format: '先给译文，有歧义处再加说明。',
      scope: '未指明语言时，说明所选的语言。',
      constraints: '保留原意、语气和名称。',
    },
    revision: { format: '完整的修改稿，再列主要改动。', constraints: '保留原意、事实和文风。' },
    ideas: { format: '几个明显不同的选项，各附简短理由。', scope: '不同的方向，而非同一想法的变体。' },
  },
  ja: {
    explanation: { format: '要点を先に、次に具体例。', scope: '何であり、どう働くか。' },
    summary: { format: '要点を先に、短い数行で。', scope: '原文にあることだけ。名前と数字は残すこと。' },
    translation: {
      format: '訳文を先に、解釈が分かれる所には注を。',
      scope: '言語の指定がなければ、選んだ言語を示すこと。',
      constraints: '意味、調子、名前を保つこと。',
    },
    revision: { format: '直した全文、次に主な変更点。', constraints: '意味、事実、文体を保つこと。' },
    ideas: {
      format: 'はっきり異なる案をいくつか、それぞれ短い理由付きで。',
      scope: '一つの案の変形ではなく、異なる方向。',
    },
  },
  ko: {
    explanation: { format: '핵심을 먼저, 그다음 구체적인 예.', scope: '무엇이며 어떻게 작동하는지.' },
    summary: { format: '요점을 먼저, 짧은 몇 줄로.', scope: '원문에 있는 내용만, 이름과 숫자는 그대로.' },
    translation: {
      format: '번역을 먼저, 뜻이 갈리는 곳에는 설명을.',
      scope: '언어가 정해지지 않았으면 고른 언어를 밝힐 것.',
      constraints: '뜻과 어조와 이름을 지킬 것.',
    },
    revision: { format: '고친 글 전체, 그다음 주요 변경 사항.', constraints: '뜻과 사실과 문체를 지킬 것.' },
    ideas: { format: '뚜렷이 다른 몇 가지 안, 각각 짧은 이유와 함께.', scope: '한 가지의 변형이 아닌 서로 다른 방향.' },
  },
  ar: {
    explanation: { format: 'الفكرة الأساسية أولاً، ثم مثال ملموس.', scope: 'ما هو الشيء وكيف يعمل.' },
    summary: {
      format: 'النقاط الرئيسية أولاً، في أسطر قصيرة.',
      scope: 'ما يقوله المصدر فقط، مع حفظ الأسماء والأرقام.',
    },
    translation: {
      format: 'الترجمة أولاً، ثم ملاحظة حيث تحتمل أكثر من معنى.',
      scope: 'إن لم تُذكر لغة فاذكر اللغة المختارة.',
      constraints: 'احفظ المعنى والنبرة والأسماء.',
    },
    revision: {
      format: 'النص المنقح كاملاً، ثم أهم التغييرات.',
      constraints: 'احفظ المعنى والحقائق والأسلوب.',
    },
    ideas: { format: 'عدة خيارات مختلفة، لكل منها سبب موجز.', scope: 'اتجاهات متنوعة لا صيغ من فكرة واحدة.' },
  },
  hi: {
    explanation: { format: 'पहले मूल विचार, फिर एक ठोस उदाहरण।', scope: 'यह क्या है और कैसे काम करता है।' },
    summary: {
      format: 'पहले मुख्य बातें, कुछ छोटी पंक्तियों में।',
      scope: 'केवल वही जो स्रोत में है; नाम और संख्याएँ बनाए रखें।',
    },
    translation: {
      format: 'पहले अनुवाद, फिर जहाँ अर्थ अस्पष्ट हो वहाँ टिप्पणी।',
      scope: 'भाषा न बताई गई हो तो चुनी गई भाषा बताएँ।',
      constraints: 'अर्थ, लहजा और नाम बनाए रखें।',
    },
    revision: {
      format: 'पूरा सुधारा हुआ पाठ, फिर मुख्य बदलाव।',
      constraints: 'अर्थ, तथ्य और शैली बनाए रखें।',
    },
    ideas: { format: 'कई अलग-अलग विकल्प, हर एक के साथ छोटा कारण।', scope: 'अलग दिशाएँ, एक ही विचार के रूप नहीं।' },
  },
} as const satisfies Readonly<Record<string, TaskLines>>
