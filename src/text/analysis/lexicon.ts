/**
 * Maps words of a dozen languages to concepts. A model that learns from concepts beside words understands `напиши`
 * after having seen `write`, and words that no training row contained.
 *
 * Words are separated by spaces. `word*` = all words with the same first five letters; `one_two` = two adjacent words,
 * which also represents Chinese and Japanese, read one character at a time: `代_码`.
 */
export const lexicon = {
  // Tasks.
  produce: `write create make generate build compose draft prepare develop produce design craft construct come_up give_me show_me provide
    writing creating making escribe escribir redacta crea crear genera haz escreva escrever crie gere faça ecris écris écrire rédige crée créer
    génère fais scrivi scrivere crea fammi schreibe schreib schreiben verfasse erstelle erzeuge entwickle mach schrijf maak напиш* созда* сгене*
    составь придумай 写_一 写_个 写_出 生_成 创_建 编_写 书_て 書_い 書_き 作_成 作_っ 써줘 작성해줘 작성해 만들어줘 만들어 작성해보세요 yaz yazın oluştur napisz stwórz`,
  edit: `rewrite rephrase paraphrase reword proofread proofreading edit polish shorten rewritten reformulate reformule reformula umschreiben
    umformulieren formuliere korrigiere corrige corrija correggi riscrivi reescribe reescreva réécris перефраз* перепи* исправ* отредак* 改_写 润_色
    校_对 修_改 添_削 typos misspelled grammatically grammar spelling grammaire grammatik gramática ortografía rechtschreibung грамматик*
    paraphrases rewording concise tone formal politely professional_manner`,
  translate: `translate translation translating traduce traducir traduz traduzir traduis traduire traduci tradurre übersetze übersetzen übersetzung
    vertaal перев* 翻_译 翻_訳 번역 번역해 çevir przetłumacz`,
  summarize: `summarize summarise summary summaries synopsis tldr condense resume resumir resumen resumo résume résumer résumé riassumi
    zusammenfassung zusammenfassen fasse кратк* резюм* 总_结 摘_要 概_括 要_約 요약 요약해줘 key_takeaways key_points`,
  explain: `explain describe define elaborate clarify teach illustrate explique explica explicar expliquer spiega erkläre erklären beschreibe
    describe décris descreva descrivi leg_uit объясн* опиши опишите описать расска* 解_释 说_明 説_明 介_绍 教_え 설명해줘 설명 açıkla wyjaśnij tell_me`,
  analyze: `analyze analyse analyzing analysing analysis evaluate assess interpret critique examine discuss review argue justify criticize critically
    evaluation assessment interpretation insights perspective analiza analizar analise analisar analyser évalue analizza valuta analysiere bewerte
    beurteile untersuche проанал* оцени* рассмот* обсуд* 分_析 评_价 评_估 評_価 考_察 분석 분석해줘 debate stance hypothesis argument opinion`,
  extract: `extract classify categorize categorise identify determine detect label annotate infer recognize sentiment entities entity extrahiere
    klassifiziere extrae clasifica identifica extraire identifie извле* классиф* определ* 提_取 分_类 抽_出 spam genre positive negative neutral`,
  list: `list name enumerate suggest recommend give examples recommendations suggestions lista enumera recomienda sugiere liste recommande nenne
    empfiehl empfehle empfehlung перечис* посовет* порекомен* назови 列_出 推_荐 おす_す 教_え top best most_popular favorite good`,
  compare: `compare compares comparing comparison vs versus difference differences differ differs differently compara comparar comparación
    comparação compare comparez comparer comparaison différence différences confronta confronto differenza differenze vergleiche vergleich
    vergleichen unterschied unterschiede unterscheiden verschil vergelijk diferencia diferencias diferença diferenças сравни* разни* отлич* 比_较
    对_比 区_别 差_别 比_べ 違_い 비교 비교해줘 차이 차이점 pros cons advantages disadvantages similarities contrast better_than worse_than better_choice
    vorteile nachteile ventajas desventajas avantages inconvénients преимущ* недост* 优_缺 karşılaştır porównaj trade_offs tradeoffs main_advantage`,
  plan: `plan plans planning itinerary roadmap schedule agenda curriculum syllabus timetable checklist workshop workshops goals milestones timeline
    regimen strategy strategies planen planung zeitplan reiseplan trainingsplan stundenplan wochenplan planifica planificar plano
    planeja planejar cronograma itinerario horario planifier planifie programme pianifica piano programma планы план плана планир* распис* маршрут*
    расписание стратег* 计_划 规_划 計_画 予_定 行_程 日_程 계획 일정 여행_계획 planı planla zaplanuj rutina rutine routine`,
  occasion: `trip travel vacation holiday journey tour visit wedding birthday party event week weekend days month workout training diet meal meals
    study exam marathon budget garden reise urlaub hochzeit woche viaje vacaciones semana viagem férias voyage vacances semaine viaggio vacanza
    settimana поезд* отпуск* недел* путеш* 旅_行 旅_游 假_期 여행 launch campaign onboarding move renovation semester standup meeting meetings`,
  solve: `solve calculate compute evaluate prove derive simplify integrate differentiate factor estimate convert calcula calcular resuelve resolver
    demuestra calcule resolva prove calculer résous résoudre démontre calcola risolvi dimostra berechne löse beweise rechne реши решите решить решение вычис* докаж*
    посчит* найди_знач рассчит* 计_算 求_解 证_明 計_算 解_い 解_く 証_明 계산 계산해 풀어줘 hesapla oblicz rozwiąż`,
  imagine: `imagine pretend suppose embody embrace assume picture roleplay persona role act_as act_like you_are imagina finge imagine imaginez
    stell_dir представь вообра* 想_象 假_装 扮_演 想像 immagina fictional fantasy`,
  program: `implement code program refactor compile deploy install configure parse automate scrape render debug serialize encrypt integrate
    implementa implementar programa programar implémente implémenter programmer programmiere programmieren implementiere реализ* запрогр*
    编_程 实_现 実_装 プ_ロ 구현 구현해줘 kodla zaimplementuj convert_it run execute`,
  ask_fix: `fix debug troubleshoot solve resolve repair corrige arregla corriger réparer beheben behebe repariere почин* исправь 修_复 调_试 修_正 直_し
    고쳐줘 wrong problem problems issue issues problema problème fehler проблем* 问_题 問_題`,

  // Question words.
  why: `why why_is warum wieso weshalb pourquoi por_que por_qué perché почему зачем 为_什 為_什 な_ぜ どう_し 왜 neden niçin dlaczego waarom reason reasons`,
  how: `how how_to how_do how_can wie como cómo comment come как 怎_么 如_何 どう_や 어떻게 nasıl jak hoe`,
  what: `what what_is what_are whats was_ist was que qué quel quelle quels qu'est cosa quale что какой какая какие какое 什_么 何_で 何_が 뭐 무엇 ne co wat 是_什`,
  who: `who whose wer wessen quién quien quem qui chi кто чей 谁 誰 누가 누구 kim kto wie_is`,
  when: `when wann cuándo cuando quando quand когда 何_時 什_时 いつ 언제 ne_zaman kiedy wanneer what_year in_welchem`,
  where: `where wo woher wohin dónde donde onde où dove где куда откуда 哪_里 哪_儿 ど_こ 어디 nerede gdzie waar`,
  which: `which welche welcher welches cuál cuáles qual quais quel quelle quale quali который которая 哪_个 ど_の どち_ら 어떤 hangi który welke`,
  how_many: `how_many how_much how_long how_far how_fast how_old wie_viel wie_viele cuánto cuántos cuántas quanto quantos quantas combien quanti quante
    сколько 多_少 几_个 い_く 몇 얼마 kaç ile hoeveel`,
  may: `can_you could_you would_you will_you kannst_du können_sie puedes podrías pode poderia peux_tu pouvez_vous puoi можешь можете 能_不 可_以`,
  should: `should ought moral morally ethical ethics ethically is_it sollte sollten debería devrait deveria dovrebbe следует obligation right_to justified`,
  what_if: `what_if what_would would_happen happens_if was_wäre qué_pasaría et_si что_если 如_果 もし_も hypothetical scenario`,

  // Programs.
  language: `python javascript typescript java golang kotlin php perl bash powershell matlab sql haskell scala lua vba solidity fortran cobol verilog
    vhdl html css scss jquery nodejs node js ts django flask fastapi laravel symfony rails pytorch tensorflow numpy pandas sklearn keras opencv jax
    llvm webpack vite redux graphql docker dockerfile kubernetes kubectl k8s helm terraform ansible nginx apache linux ubuntu debian nixos systemd cmake
    makefile gcc clang ffmpeg ssh vim emacs git github gitlab postgres postgresql mysql sqlite mongodb redis snowflake firebase supabase
    elasticsearch kafka rabbitmq spark hadoop airflow dbt databricks angular svelte vue vuejs nextjs react reactjs nuxt flutter dart android xcode
    swiftui jetpack unity unreal godot pygame roblox luau arduino esp raspberry stm cortex assembly cuda opengl vulkan glsl hlsl shader qt
    wxpython tkinter pyqt pyside selenium playwright puppeteer beautifulsoup scrapy pytest junit jest mocha cypress spring springboot hibernate
    maven gradle npm pip conda poetry yarn cargo rust ruby elixir erlang clojure ocaml julia prolog lisp scheme racket zig nim wasm webassembly
    dotnet asp csharp cpp fsharp wpf winforms blazor xaml entity_framework linq visual_studio vscode jupyter notebook colab streamlit gradio
    matplotlib seaborn plotly ggplot ggplot2 dplyr tidyverse shiny latex markdown xml json yaml toml csv regex pcre grpc protobuf openapi swagger oauth jwt
    websocket websockets http https tcp udp dns api apis rest aws ec2 s3 lambda azure gcp bigquery cloudflare vercel heroku netlify langchain
    llamaindex huggingface transformers pinecone excel powerbi dax power_bi power_query tableau google_sheets apps_script wordpress woocommerce shopify
    drupal magento odoo salesforce apex soql sap abap hana autohotkey applescript awk sed grep zsh cmd batch cron iptables wireguard openvpn vpn
    proxmox vmware hyper_v qemu kvm esxi ansible puppet jenkins ci cd prometheus grafana splunk kql sentinel yara mimikatz metasploit nmap wireshark
    rhel centos fedora opensuse windows_server active_directory ldap kerberos nginx haproxy traefik istio envoy vault consul nomad etcd
    питоне питон python3 py rstudio stata spss sas hydra discord_bot telegram_bot chrome_extension graphviz mermaid plantuml uml svg canvas
    threejs d3 electron tauri ionic cordova capacitor expo react_native mfc winapi win32 gtk sdl ncurses pcl ros gazebo micropython plc ladder_logic`,
  code_noun: `code codes function functions script scripts class classes program programs method methods variable variables array arrays string strings
    loop loops regex query queries component components endpoint endpoints app apps application applications module modules package packages library libraries framework
    frameworks database databases schema table column columns dataframe dataset thread threads pointer pointers compiler interpreter backend frontend
    server client repository repo branch commit macro plugin widget parser bot crawler scraper cli gui command commands terminal shell console
    file files folder directory config configuration container cluster pod deployment pipeline workflow middleware callback async await promise
    decorator iterator generator struct enum interface inheritance polymorphism constructor object objects instance attribute parameter
    parameters argument boolean integer float byte bytes bit buffer cache memory stack heap kernel driver socket request requests response webhook
    código funcion función clase programa aplicación fonction classe programme fichier application funktion klasse programm quellcode datei skript
    anwendung função programa arquivo funzione programma codice код кода коде функц* скрипт* класс программ* базы_данных 代_码 函_数 程_序 脚_本 类_的
    コード 関_数 プログ_ラ スクリ_プ 코드 함수 프로그램 클래스 kod fonksiyon funkcja skrypt software website webpage web_page frontend ui dom div css api_call autolisp autocad blender gherkin cucumber
    implementation snippet syntax closure trait codebase heredoc expression smart_contract wallet_address token tokens extension addon add_on browser
    chrome firefox dataset datasets neural_network training_loop epochs gradient loss_function batch_size layer tensor embedding embeddings vector_database
    hash hashing authentication oauth cookie session login cors proxy firewall subnet router vlan port ssl certificate encryption obfuscate directive
    expression serializer orm migration index indexes primary_key foreign_key left_join inner_join subquery stored_procedure trigger unit_test unit_tests test_case syntax runtime multithreading concurrency atomic mutex dependency dependencies version`,
  algorithm: `algorithm algorithms leetcode codeforces hackerrank dynamic_programming time_complexity space_complexity binary_search binary_tree
    linked_list bubble_sort merge_sort quick_sort heap_sort quicksort mergesort timsort fibonacci sieve dijkstra knapsack backtracking recursion
    recursive memoization palindrome subsequence substring subarray subarrays permutations combinations primes prime_numbers prime_search nums traversal
    bfs dfs depth_first breadth_first trie graph node nodes matrix_multiplication leaf vertices edges n_queens sudoku_solver hash_table
    big_o greedy divide_and sorting sorted sort testcases test_cases constraints input_format output_format sample_input sample_output stdin
    algoritmo algoritmos algorithme algorithmes algorithmus algorithmen алгори* 算_法 排_序 アルゴ_リ 알고리즘 정렬 algoritma algorytm factorial
    majority_element two_sum challenge challenges contest`,
  error: `error errors exception exceptions traceback stacktrace segfault bug bugs crash crashes crashed crashing fails failing failed failure warning
    undefined null nan nullpointerexception typeerror valueerror keyerror syntaxerror nameerror indexerror attributeerror importerror
    modulenotfounderror runtimeerror referenceerror filenotfounderror econnrefused crashloopbackoff oomkilled timeout refused denied invalid unexpected unable cannot_find
    not_working not_work doesn_t don_t isn_t won_t isnt doesnt dont can_t cant wont stuck broken wrong missing deprecated deadlock leak overflow
    fehler fehlermeldung funktioniert_nicht ausnahme erreur erreurs exception plante marche_pas errore eccezione erro falha exceção no_funciona fallo
    falla ошибк* не_работ исключ* падает 错_误 报_错 异_常 出_错 バグ エラ_ー 動_か 오류 에러 버그 hata błąd fout debug debugging wa
    s_wrong goes_wrong line exit_code 404 500 403 401 getting_this getting_an gives_me`,

  technology: `ai llm llms gpt chatgpt claude gemini gpu gpus cpu ram ssd laptop pc computer phone smartphone hardware machine_learning deep_learning
    artificial_intelligence robot robots internet wifi device devices technology technologies künstliche_intelligenz inteligencia_artificial нейросет*
    искусственный_интеллект 人_工 人工_智 nvidia intel amd android_phone iphone gadget battery`,

  // Numbers.
  math: `equation equations integral integrals derivative derivatives theorem lemma polynomial polynomials determinant eigenvalue eigenvalues logarithm
    trigonometry algebra calculus geometry modulo arithmetic probability permutation combinatorics variance deviation triangle circle rectangle
    polygon hypotenuse radius diameter perimeter circumference area volume angle slope intersect parallel perpendicular coordinate coordinates
    integer integers fraction fractions ratio percent percentage divisible divisor divisors remainder odd even prime rational irrational inequality inequalities sum product
    quotient square_root cube_root nth sequence series limit converge matrix vector vectors median average mean mathematical mathematics
    math maths riddle puzzle puzzles sudoku interest compound annuity dice coin coins balls marbles statement hypothesis_test formula mod sqrt frac
    times_as twice half_as fewer_than more_than divided multiplied plus minus altogether remaining left_over each_day per_hour total_cost
    ecuación ecuaciones derivada probabilidad triángulo equação derivada probabilidade triângulo équation dérivée probabilité triangle intégrale
    equazione derivata probabilità gleichung gleichungen ableitung wahrscheinlichkeit dreieck wurzel integrál уравн* интегр* произв* вероят*
    треуг* матем* 方_程 积_分 导_数 概_率 三_角 数_学 微_分 確_率 積_分 方程_式 수학 방정식 확률 적분 denklem równanie endpoints epsilon accounting depreciation`,
  unit: `km miles meters metres cm feet inches liters litres gallons kg grams pounds hours minutes seconds mph kwh watts watt volts dollars dollar cents
    euros usd eur rupees degrees acres tons interest_rate percent per_year per_month apr cagr cost costs price speed distance`,

  // Prose.
  document: `email emails e_mail letter article essay blog post posts report reports speech paragraph bio biography proposal announcement headline headlines
    caption abstract introduction tweet press_release memo testimonial advertisement newsletter resume cv cover_letter linkedin product_description
    job_description description outline presentation manual guide documentation template signature subject_line review reviews statement brochure flyer
    script_for video_script podcast conclusion thesis dissertation paper whitepaper white_paper policy contract agreement scope_of requirements user_story
    user_stories specification business_plan prompt prompts dialog instagram facebook twitter youtube seo meta_description website_copy copywriting pitch
    carta artículo ensayo correo discurso informe reseña anuncio redação artigo carta ensaio relatório discurso lettre article rédaction discours
    courriel mail annonce compte_rendu lettera articolo saggio discorso relazione brief artikel aufsatz bewerbung anschreiben rede bericht письмо
    стать* сочинен* эссе речь отчет доклад реферат объявл* 邮_件 文_章 作_文 报_告 信_件 演_讲 论_文 メール 手_紙 記_事 レポ_ー 이메일 편지 글 기사
    sentence sentences text paragraphs wording title titles slogan tagline bullets heading headings`,
  fiction: `story stories poem poems song songs lyrics haiku limerick sonnet fairytale fairy_tale fanfiction novel plot screenplay rap ballad scene
    monologue dialogue parody satire satirical sarcastic snarky joke jokes riddle tale tales verse rhyme rhyming stand_up standup comedy character characters
    protagonist villain hero dungeons dnd d_d rpg gurps anime campaign lore worldbuilding superhero wizard dragon elf
    alien vampire kingdom magical imaginary humorous funny whimsical vivid captivating  style_of cuento cuentos historia poema poemas canción
    chiste chistes novela fábula conto história poema canção piada conte histoire poème chanson blague racconto storia poesia canzone barzelletta
    filastrocca geschichte geschichten gedicht gedichte lied märchen witz witze kurzgeschichte erzählung verhaal gedicht истори* сказк* стих стихи стихотв* стихи
    песню песня песни рассказ* анекдот* 故_事 诗 首_诗 小_说 笑_话 歌_词 童_话 物_語 詩 小_説 俳_句 歌_詞 이야기 시 노래 소설 동화 şiir hikaye wiersz opowiadanie bajkę
    brainstorm brand_name names_for name_for acronym nickname invent new_word creative creatively ideas`,
  material: `following given below above passage excerpt provided attached based_on underlined quote quoted this_text this_article this_paragraph siguiente
    suivant folgenden folgende folgender seguinte следующ* 以_下 下_面 下_列 次_の 다음 aşağıdaki poniższy this_code my_code`,

  // Thought.
  cause: `cause causes caused effect effects impact impacts implications consequence consequences factors influence influences influenced affect affects
    significance ramifications shape shaped contribute contributed relationship correlation role_of challenges controversies meaning symbolize
    symbolizes theme themes motivations philosophical philosophy socioeconomic psychological ursachen folgen auswirkungen einfluss causas
    consecuencias efectos impacto conséquences effets influence cause conseguenze effetti причин* последств* влиян* 原_因 影_响 后_果 影_響 意_义
    원인 영향 society civilization humanity democracy capitalism`,
  advice: `tips advice recipe recipes ways steps methods habit healthy should_i can_i do_i i_m my_cat my_dog i_need need_to learn_how symptoms treatment cook bake cooking
    ingredients consejos receta conseils recette consigli ricetta tipps rezept rat совет* рецепт* 建_议 食_谱 レシ_ピ 레시피 places movies books songs
    games restaurants activities hack instructions exercise`,
  greeting: `hi hello hey thanks thank hola hallo ciao bonjour salut привет здравст* спасибо 你_好 谢_谢 こん_に あり_が 안녕 안녕하세요 merhaba cześć
    how_are are_you who_are your_name do_you i_am my_name you_feel good_morning good_evening gracias merci danke obrigado grazie olá`,
  fact: `capital population invented discovered founded born died author wrote painted meaning definition located tallest largest longest oldest
    happened history movie film album series actor country king war battle year located_in called known_as stand_for`,
  detail: `must ensure requirements constraints format include including exactly at_least at_most no_more limit avoid without only use_the do_not never
    step_by output json words_long bullet each_section tone_should as_follows`,

  // Difficulty.
  hard: `rigorous rigorously formally theorem derive derivation lemma prove proof architecture architect distributed scalable concurrency concurrent
    asynchronous lock_free fault_tolerant microservices optimize optimise optimization refactor complexity trade_offs tradeoffs optimal optimally in_depth
    comprehensive thorough thoroughly detailed exhaustive research dissertation thesis peer_reviewed literature_review quantum cryptography kernel
    compiler neural bayesian stochastic differential topology manifold asymptotic eigenvalue integral implications consequences multi_step edge_cases
    constraints requirements advanced complex challenging critically synthesize diagnose investigate production_ready high_performance
    ausführlich ausführliche gründlich detailliert beweise détaillée détaillé approfondie démontre detallado detallada demuestra detalhado dettagliato
    подробн* докажи оптимиз* сложн* 详_细 深_入 证_明 优_化 詳_し 証_明 최적화 자세히`,
  simple: `define spell synonym synonyms antonym acronym simple simply short shortly briefly brief quick quickly basic eli5 yes_or one_word one_sentence
    one_line list name convert capital meaning kurz einfach brièvement simplement breve brevemente simples semplice кратко коротко просто 简_单 简_短
    簡_単 간단히 in_one just_the`,

  // Time.
  now: `now today tonight currently current present nowadays latest newest recent recently right_now ongoing upcoming up_to so_far still this_year this_month this_week this_morning this_season
    as_of  these_days live real_time breaking hoy ahora actualmente actual actuales último última reciente este_año hoje agora atualmente
    atual recente mais_recente aujourd maintenant actuellement actuel actuelle actuels récent récente récemment dernier dernière en_ce cette_année oggi
    adesso attualmente attuale ultimo recente quest_anno heute jetzt aktuell aktuelle aktuellen aktueller gegenwärtig derzeit derzeitige derzeitigen
    momentan neueste neuesten neuester letzte dieses_jahr diese_woche сегодня сейчас теперь текущ* нынеш* послед* настоящ* недав* ныне в_этом
    现_在 目_前 今_天 当_前 最_新 最_近 今_年 现_任 今_日 現_在 最_新 最_近 今_年 今_日 현재 지금 오늘 최근 최신 올해 اليوم الآن حاليا حاليًا الحالي الحالية أحدث
    آخر الأخير الأخيرة حالياً היום עכשיו כיום הנוכחי הנוכחית הנוכחיים האחרון האחרונה כרגע העדכני bugün şimdi şu_anda güncel dziś teraz obecnie aktualny`,
  near: `tomorrow yesterday next_week next_month next_year last_night last_week last_month last_year next_game weekend mañana ayer amanhã ontem demain hier
    domani ieri morgen gestern завтра вчера 明_天 昨_天 明_日 昨_日 내일 어제 غدا أمس מחר אתמול jutro wczoraj yarın dün`,
  changing: `president minister chancellor mayor governor ceo chairman leader head_of champion champions coach manager captain weather forecast temperature
    price prices stock share exchange_rate bitcoin ethereum rate inflation unemployment gdp population worth net_worth salary score scores standings ranking ranked
    rankings record holder version release released schedule news headlines poll polls election elections season episode episodes subscribers followers
    richest tallest most_popular most_expensive highest_paid box_office tickets flight flights traffic hours_open open status alive married
    dating girlfriend boyfriend wife age old playing streaming presidente ministro alcalde precio clima tiempo noticias campeón población
    prefeito preço previsão notícias président ministre maire prix météo actualités champion sindaco prezzo meteo notizie präsident präsidentin
    bundeskanzler minister bürgermeister preis kurs wetter nachrichten meister bevölkerung einwohner präsid* президент* министр* мэр курс погод*
    новост* чемпион* населен* цена цены 总_统 总_理 主_席 价_格 股_价 天_气 新_闻 人_口 冠_军 汇_率 大統_領 首_相 株_価 天_気 人_口 대통령 날씨 주가 뉴스
    رئيس وزير سعر الطقس سكان أخبار נשיא ראש_הממשלה מחיר מזג אוכלוסיית מנכ`,
  settled: `was were did first invented discovered founded wrote written painted born died composed directed originally ancient century war battle treaty
    formula symbol element chemical atomic capital continent planet moon ocean author inventor founder erste erfand entdeckte gründete schrieb geboren
    war wurde hat premier inventé découvert fondé écrit naissance fut était primero inventó descubrió escribió nació fue era первый первая первым первого первой первую изобр* откры*
    основа* напис* родил* был была было 第_一 发_明 发_现 创_立 写_的 出_生 أول اخترع اكتشف أسس كتب ولد كان كانت ראשון המציא גילה ייסד כתב נולד היה הייתה`,
  as_of: `as_of à_ce au_jour stand a_día a_dia até al_día na_dzień 현재_기준`,
  as_of_today: `stand_heute stand_jetzt ce_jour ad_oggi até_hoje día_de dia_de на_сегодня на_сегодняшний 截_至 截_止 本_日時`,

  // The web.
  seek: `search searching browse google look_up lookup look_for busca buscar búscame cherche chercher recherche suche such cerca cercare pesquise procure
    pesquisar zoek найди поищи загугли ищи 搜_索 搜_一 查_找 查_一 ابحث חפש wyszukaj find_me find_out`,
  seek_after: `検_索 調_べ 검색 검색해 찾아줘 suchen nachschlagen recherchieren nachsehen zoeken opzoeken ara araştır 搜_索 搜_一 查_找 查_一 查_查 搜_搜`,
  web: `web internet online google ネッ_ト 上_网 网_上 联_网 интернете интернет сети онлайн línea rete netz netzwerk 인터넷 인터넷에서 온라인 الإنترنت الانترنت
    الويب באינטרנט ברשת sieci internecie internetten webu bing duckduckgo`,
  visit: `read summarize summarise summary visit review translate explain analyze analyse extract lis lire résume résumer lies lesen zusammenfassen fasse
    lee leer resume resumir leia ler leggi leggere riassumi прочитай прочти изучи перескажи 阅_读 读_取 总_结 概_括 読ん 要_約 읽어 읽고 요약해줘 اقرأ لخص קרא סכם
    tldr what_does what_is according_to key_points`,
  address: 'http https',

  year: Array.from({ length: 524 }, (_, past) => 1500 + past).join(' '),
} as const satisfies Readonly<Record<string, string>>

export type Concept = keyof typeof lexicon
