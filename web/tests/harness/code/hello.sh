cat lib/word.txt
